// Takes everything that needs gRPC's library out of generated code. Messages and services stay as they are, for nodes,
// which serve gRPC themselves, and for the SDK; the generated clients go into files of their own, for tests and
// benchmarks. The generated types of servers are not used.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const GRPC_IMPORT = /^import \{\n((?: {2}.*,\n)+)\} from "@grpc\/grpc-js";\n/m;
const SERVER = /^export interface \w+ extends UntypedServiceImplementation \{\n(?:.*\n)*?\}\n\n/gm;
const CLIENT =
  /^export (?:interface \w+ extends Client \{|const \w+ = makeGenericClientConstructor\()\n?(?:.*\n)*?\};?\n\n/gm;
const EXPORTED = /^export (?:interface|type|const) (\w+)/gm;

/** Rewrites the generated files in `folder`. */
export function splitClients(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    const path = join(folder, name);
    const text = readFileSync(path, 'utf8');
    const imported = GRPC_IMPORT.exec(text);
    if (imported === null) continue;
    const clients = text.match(CLIENT).join('');
    const rest = text.replace(imported[0], '').replace(SERVER, '').replace(CLIENT, '');
    writeFileSync(path, rest);
    writeFileSync(path.replace(/\.ts$/, '.clients.ts'), clientsModule({ clients, rest, imported: imported[1], name }));
  }
}

function clientsModule({ clients, rest, imported, name }) {
  const isUsed = (identifier) => new RegExp(`\\b${identifier}\\b`).test(clients);
  const ofGrpc = imported.split('\n').filter((line) => line !== '' && isUsed(/(\w+),/.exec(line)[1]));
  const ofMessages = [...new Set([...rest.matchAll(EXPORTED)].map(([, identifier]) => identifier))].filter(isUsed);
  return [
    '// Made by scripts/split-clients.mjs.',
    `import {\n${ofGrpc.join('\n')}\n} from "@grpc/grpc-js";`,
    `import {\n${ofMessages.map((identifier) => `  ${identifier.endsWith('Service') ? '' : 'type '}${identifier},\n`).join('')}} from "./${basename(name)}";`,
    '',
    clients,
  ].join('\n');
}

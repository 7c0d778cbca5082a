// The declarations of the package `remora`: those that its entries lead to, and no others.
//
// ST1. A name comes from the file that declares it, and not from a file that lists what a package exports. So the
//      package contains only declarations that its entries need.
// ST2. Paths stand in place of the names of packages. Only modules of Node are imported by name.
// ST3. TypeScript 5.2 can check them: types that came later are written as those before them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { readJson, root } from '../lib.mjs';
import { writeJson } from './package-files.mjs';

const SDK = 'packages/client';
const OWN = /^@remora\//;
/** Declarations of packages whose code comes with ours, and their places in the package. */
const OTHERS = new Map([['@bufbuild/protobuf/wire', { file: 'binary-encoding.d.ts', place: 'protobuf/wire.d.ts' }]]);
/** `import { A, type B as C } from 'x';` and the same with `export`, or any other reference to a module. */
const REFERENCE =
  /^(import|export)( type)? \{([^}]*)\} from ['"]([^'"]+)['"];$|(^(?:import|export)(?: type)? \*(?: as \w+)? from |\bimport\()['"]([^'"]+)['"]/gm;
const STAR = /^export(?: type)? \*(?: as (\w+))? from ['"]([^'"]+)['"];$/gm;

/** ST3. Newer versions of TypeScript take these for the same. */
const LATER_TYPES = [
  [/\bNoInfer<((?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*)>/g, '$1'],
  [/\bMapIterator<([^<>]+)>/g, "ReturnType<Map<$1, never>['keys']>"],
  [/\bSetIterator<([^<>]+)>/g, "ReturnType<Set<$1>['values']>"],
  [/\b(Buffer|Uint8Array)<ArrayBuffer(?:Like)?>/g, '$1'],
];

/** Writes all declarations for one kind of modules, `esm` or `cjs`. */
export function writeTypes(directory, format) {
  const entries = ['index.d.ts', 'admin.d.ts', 'metrics.d.ts', 'redlock.d.ts', 'migrate.d.ts'];
  const found = new Set(entries.map((name) => join(root, SDK, 'dist', name)));
  for (const file of found) {
    const pathTo = (target) => {
      found.add(target);
      const path = relative(dirname(placeOf(file)), placeOf(target)).replaceAll(sep, '/');
      return `'${path.startsWith('.') ? path : `./${path}`}'`.replace(/\.d\.ts'$/, ".js'");
    };
    const text = textOf(file).replace(REFERENCE, (whole, keyword, type = '', list, from, before, specifier) => {
      const target = declarationOf(from ?? specifier, file);
      if (target === undefined) return whole;
      if (before !== undefined) return `${before}${pathTo(target)}`;
      return statements({ keyword, type, names: namesIn(list), target, pathTo });
    });
    const place = join(directory, placeOf(file));
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
  writeJson(join(directory, 'package.json'), { type: format === 'esm' ? 'module' : 'commonjs' });
}

/** ST1. The same names, each from the file that declares it. */
function statements({ keyword, type, names, target, pathTo }) {
  const byFile = new Map();
  const lines = [];
  for (const { isType, name, as } of names) {
    const origin = originOf(target, name);
    if (origin === undefined) throw new Error(`${target} does not export ${name}`);
    if (origin.name === undefined) {
      lines.push(`${keyword}${isType ? ' type' : type} * as ${as} from ${pathTo(origin.file)};`);
      continue;
    }
    const item = `${isType ? 'type ' : ''}${origin.name === as ? as : `${origin.name} as ${as}`}`;
    byFile.set(origin.file, [...(byFile.get(origin.file) ?? []), item]);
  }
  for (const [file, items] of byFile) lines.push(`${keyword}${type} { ${items.join(', ')} } from ${pathTo(file)};`);
  return lines.join('\n');
}

/** Where an exported name is declared, and as what; without a name: it stands for all of that file. */
function originOf(file, name) {
  const text = textOf(file);
  for (const [, keyword, , list, from] of text.matchAll(REFERENCE)) {
    const found = keyword === 'export' ? namesIn(list).find(({ as }) => as === name) : undefined;
    if (found !== undefined) return originOf(declarationOf(from, file), found.name);
  }
  const declared = `^export (declare )?(abstract )?(class|const|function|interface|type|enum) ${name}\\b`;
  if (new RegExp(`${declared}|^export( type)? \\{[^}]*\\b${name}\\b[^}]*\\};$`, 'm').test(text)) return { file, name };
  for (const [, as, from] of text.matchAll(STAR)) {
    const target = declarationOf(from, file);
    if (as === name) return { file: target };
    const found = as === undefined && target !== undefined ? originOf(target, name) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function namesIn(list) {
  return list
    .split(',')
    .map((item) => /^\s*(type )?\s*(\w+)(?: as (\w+))?\s*$/.exec(item))
    .filter((match) => match !== null)
    .map(([, type, name, as = name]) => ({ isType: type !== undefined, name, as }));
}

function textOf(file) {
  const text = readFileSync(file, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
  return LATER_TYPES.reduce((written, [later, before]) => written.replace(later, before), text);
}

/** The file that an import means; undefined for modules of Node. @throws Error for a package that is not in ours. */
function declarationOf(specifier, file) {
  if (specifier.startsWith('.')) return resolve(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'));
  if (specifier.startsWith('node:')) return undefined;
  const other = OTHERS.get(specifier);
  if (other !== undefined) return join(dirname(createRequire(file).resolve(specifier)), other.file);
  if (!OWN.test(specifier)) throw new Error(`${file} needs the types of ${specifier}, which are not in the package`);
  const [, folder, ...rest] = specifier.split('/');
  const { exports } = readJson(join('packages', folder, 'package.json'));
  return join(root, 'packages', folder, exports[['.', ...rest].join('/')].types);
}

/** `packages/base/dist/clock.d.ts` is published as `base/clock.d.ts`. */
function placeOf(file) {
  const other = [...OTHERS.values()].find((one) => file.includes('node_modules') && basename(file) === one.file);
  return other?.place ?? relative(join(root, 'packages'), file).replace(`${sep}dist${sep}`, sep);
}

// What a bundle contains of other people's packages: their versions, their licences, and a bill of materials.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library';
import { root } from '../lib.mjs';

const LICENSE_FILE = /^(licen[cs]e|copying|notice)(\.|-|$)/i;

/** The packages of others that esbuild put into a bundle, by name, from its metafile. */
export function componentsOf(metafile) {
  const found = new Map();
  const contents = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  for (const [input, { bytesInOutput }] of contents) {
    if (bytesInOutput === 0 || !input.includes('node_modules/')) continue;
    const dir = packageDirectory(join(root, input));
    found.set(dir, componentIn(dir));
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The package in a directory. @throws Error if it does not say under which licence it is. */
export function componentIn(dir) {
  const { name, version, license, description } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new Error(`${name} ${version} names no licence in its package.json`);
  const texts = readdirSync(dir)
    .filter((file) => LICENSE_FILE.test(file))
    .sort()
    .map((file) => readFileSync(join(dir, file), 'utf8').trim());
  return { name, version, license, description, texts };
}

/** The nearest directory above `file` whose package.json names a package; those of a build name none. */
function packageDirectory(file) {
  for (let dir = dirname(file); dir !== dirname(dir); dir = dirname(dir)) {
    const manifest = join(dir, 'package.json');
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version !== undefined) return dir;
  }
  throw new Error(`${file} is in no package`);
}

/** The licence texts of all components, as one file. */
export function licensesOf(components) {
  const rule = '-'.repeat(80);
  const sections = components.map(({ name, version, license, texts }) =>
    [`${name} ${version} (${license})`, ...texts].join('\n\n'),
  );
  return `This package contains the following packages.\n\n${sections.map((text) => `${rule}\n${text}\n`).join('\n')}`;
}

/**
 * A bill of materials in the format CycloneDX 1.6. `bundled` are in the package itself, `required` are installed beside
 * it. It contains neither times nor random numbers, so that it can be reproduced.
 */
export function billOfMaterials(product, bundled, required) {
  const bom = new Models.Bom();
  bom.metadata.component = componentFor(product);
  for (const component of [...bundled, ...required]) {
    const listed = componentFor(component);
    bom.components.add(listed);
    bom.metadata.component.dependencies.add(listed.bomRef);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}

function componentFor({ name, version, license, description }) {
  const [scope, short] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const purl = `pkg:npm/${scope === undefined ? '' : `${encodeURIComponent(scope)}/`}${short}@${version}`;
  const component = new Models.Component(Enums.ComponentType.Library, short, {
    ...{ group: scope, version, description, bomRef: purl },
    purl,
  });
  component.licenses.add(new Models.LicenseExpression(license));
  return component;
}

// The Debian package `remora`: what `remora-server` contains, systemd units, and a configuration file.
//
// DB1. It is made from the package `remora-server`, without its node for tests, and nothing else of the build.
// DB2. Removing it keeps the data; purging it removes the user and the configuration, and keeps the data, too.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../lib.mjs';

/** Debian's name of an architecture, and Node's. */
const ARCHITECTURES = new Map([
  ['amd64', 'linux-x64'],
  ['arm64', 'linux-arm64'],
]);
const CONF_FILES = ['/etc/remora/remora.yaml'];

/** Makes a package for each architecture from the directory of `remora-server`; returns their paths. */
export function packDebian({ server, version, out, epochSeconds }) {
  return [...ARCHITECTURES].map(([debian, node]) => {
    const tree = join(out, `debian-${debian}`);
    rmSync(tree, { recursive: true, force: true });
    writeTree(tree, { server, keep: node });
    writeControl(tree, { version, architecture: debian });
    const file = join(out, `remora_${version}_${debian}.deb`);
    // dpkg-deb gives files no later time than this, so the same tree makes the same bytes.
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(epochSeconds) };
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', tree, file], { env, stdio: 'pipe' });
    rmSync(tree, { recursive: true });
    return file;
  });
}

function writeTree(tree, { server, keep }) {
  const lib = join(tree, 'usr/lib/remora');
  const doc = join(tree, 'usr/share/doc/remora');
  for (const dir of ['usr/bin', 'usr/lib', 'usr/lib/systemd/system', 'etc/remora']) {
    mkdirSync(join(tree, dir), { recursive: true });
  }
  cpSync(server, lib, { recursive: true });
  mkdirSync(doc, { recursive: true });
  const documents = ['README.md', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json', 'docs', 'deploy'];
  for (const file of documents) {
    cpSync(join(lib, file), join(doc, file), { recursive: true });
    rmSync(join(lib, file), { recursive: true });
  }
  cpSync(join(lib, 'LICENSE'), join(doc, 'copyright'));
  rmSync(join(lib, 'LICENSE'));
  // The node for tests is for packages of npm.
  rmSync(join(lib, 'types'), { recursive: true });
  for (const file of readdirSync(join(lib, 'dist'))) {
    if (file.startsWith('testing')) rmSync(join(lib, 'dist', file));
  }
  const prebuilt = join(lib, 'node_modules/classic-level/prebuilds');
  for (const platform of readdirSync(prebuilt)) {
    if (platform !== keep) rmSync(join(prebuilt, platform), { recursive: true });
  }
  symlinkSync('../lib/remora/bin/remora.mjs', join(tree, 'usr/bin/remora'));
  for (const unit of ['remora.service', 'remora-backup.service', 'remora-backup.timer']) {
    cpSync(join(root, 'deploy/systemd', unit), join(tree, 'usr/lib/systemd/system', unit));
  }
  cpSync(join(root, 'deploy/systemd/remora.yaml'), join(tree, 'etc/remora/remora.yaml'));
  execFileSync('chmod', ['-R', 'u=rwX,go=rX', tree]);
}

/** As dpkg-gencontrol counts, not as this machine's file system does: a file is whole KiB, a directory is one. */
function installedKiB(tree) {
  return readdirSync(tree, { recursive: true, withFileTypes: true })
    .map((entry) => (entry.isFile() ? Math.ceil(lstatSync(join(entry.parentPath, entry.name)).size / 1024) : 1))
    .reduce((sum, size) => sum + size, 0);
}

function writeControl(tree, { version, architecture }) {
  const dir = join(tree, 'DEBIAN');
  const size = installedKiB(tree);
  mkdirSync(dir);
  const control = `Package: remora
Version: ${version}
Architecture: ${architecture}
Maintainer: The Remora authors <remora@localhost>
Installed-Size: ${size}
Depends: nodejs (>= 20), adduser
Section: database
Priority: optional
Description: lock service and consistent key-value store
 Locks with fencing, leases and queues, and the v3 API of etcd, replicated by
 Raft and split into ranges. This package contains the server and the command
 line.
`;
  writeFileSync(join(dir, 'control'), control);
  writeFileSync(join(dir, 'conffiles'), CONF_FILES.map((file) => `${file}\n`).join(''));
  for (const script of ['postinst', 'prerm', 'postrm']) {
    cpSync(join(root, 'deploy/debian', script), join(dir, script));
    chmodSync(join(dir, script), 0o755);
  }
}

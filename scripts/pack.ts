/**
 * `npm run pack`: builds the packages and makes a folder `packed` of what people install: a tarball
 * of each package, a list of all software in them (CycloneDX), and the digests of these files.
 *
 * @example
 * npm run pack && npm install --global ./packed/*.tgz
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { publishedPackages } from './published-packages.ts';

const root = dirname(import.meta.dirname);

/** Makes the tarballs of all built packages in an empty folder, and returns their names. */
export function packAll(folder: string): string[] {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const built = publishedPackages.map((name) => join(root, 'packages', name, 'dist'));
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, ...built], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return readdirSync(folder).sort();
}

/** The parts of a list in CycloneDX that are read here. */
interface Materials {
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly name: string;
    readonly version: string;
    readonly properties?: readonly { readonly name: string; readonly value: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * Writes what the built packages contain: what npm installs with them, and the libraries in their
 * bundles, which for npm are tools of the project.
 */
function writeBillOfMaterials(path: string): void {
  const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], {
    ...{ cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const all = JSON.parse(text) as Materials;
  const bundled = bundledLibraries();
  const components = all.components.filter(
    ({ name, version, properties = [] }) =>
      bundled.has(`${name} ${version}`) ||
      !properties.some((property) => property.name === 'cdx:npm:package:development'),
  );
  const refs = new Set(components.map((component) => component['bom-ref']));
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) }));
  writeFileSync(path, `${JSON.stringify({ ...all, components, dependencies }, undefined, 2)}\n`);
}

/** Folders of a package with files for browsers, which name their libraries themselves. */
const pageFolders = ['messenger', 'admin-page'];

/** Names and versions of the libraries in the built packages, as `commander 14.0.3`. */
function bundledLibraries(): Set<string> {
  const notices = publishedPackages
    .flatMap((name) => ['', ...pageFolders].map((place) => join(name, 'dist', place)))
    .map((place) => join(root, 'packages', place, 'THIRD-PARTY-LICENSES'))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'));
  const lines = notices.flatMap((text) => [...text.matchAll(/^(\S+ \d\S+)\nLicence: /gm)]);
  return new Set(lines.map(([, library = '']) => library));
}

/** Writes the digests of a folder's files in the form of `sha256sum`. */
function writeDigests(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map((name) => {
      const digest = createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex');
      return `${digest}  ${name}\n`;
    });
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

if (import.meta.main) {
  const build = spawnSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' });
  if (build.status !== 0) process.exit(1);
  const folder = join(root, 'packed');
  const names = packAll(folder);
  writeBillOfMaterials(join(folder, 'sbom.cdx.json'));
  writeDigests(folder);
  console.log(`packed ${names.length} packages; install: npm install --global ./packed/*.tgz`);
}

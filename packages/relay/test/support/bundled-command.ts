/** The command `posthouse` as it is published: it starts in a third of the time that its sources take. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { bundleCommands, findWorkers } from '../../../../scripts/bundle.ts';
import manifest from '../../package.json' with { type: 'json' };

const packages = new URL('../../../', import.meta.url).pathname;
const bundles = join(dirname(packages), 'node_modules/.cache/commands');

/** What a bundle is made of: other sources, another name. */
function sourceDigest(): string {
  const hash = createHash('sha256');
  const add = (path: string) => {
    const { mtimeMs, size } = statSync(path);
    hash.update(`${path} ${mtimeMs} ${size}\n`);
  };
  for (const name of ['relay', 'peer', 'protocol']) {
    const folder = join(packages, name, 'src');
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      add(join(folder, file));
    }
  }
  for (const file of ['package-lock.json', 'scripts/bundle.ts']) add(join(packages, '..', file));
  return hash.digest('hex').slice(0, 16);
}

/** Milliseconds after which no run uses a bundle of other sources any more. */
const keptFor = 86_400_000;

function removeOld(): void {
  if (!existsSync(bundles)) return;
  for (const name of readdirSync(bundles)) {
    const path = join(bundles, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > keptFor) rmSync(path, { recursive: true, force: true });
  }
}

/** Bundles the command, unless these sources were bundled before; returns its path. */
async function bundledCommand(): Promise<string> {
  const target = join(bundles, sourceDigest());
  const command = join(target, 'bin/posthouse.js');
  if (existsSync(command)) return command;
  removeOld();
  // Several workers may do this at once: the first one to end keeps its own.
  const own = `${target}-${process.pid}`;
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'package.json'), '{ "type": "module" }');
  const folder = join(packages, 'relay');
  const { bin: commands, optionalDependencies, engines } = manifest;
  const external = Object.keys(optionalDependencies);
  await bundleCommands({
    ...{ folder, out: own, commands, workers: findWorkers(folder), external },
    node: engines.node,
  });
  try {
    renameSync(own, target);
  } catch {
    rmSync(own, { recursive: true });
  }
  return command;
}

/** Path of the bundled command. */
export const posthouseCommand = await bundledCommand();

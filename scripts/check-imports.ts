/**
 * Checks which folder of the relay may import which. The folders stand on floors; a file imports
 * from lower floors and from its own folder. `context.ts` is the one exception: it declares the
 * interfaces that handlers use and names types of upper floors.
 *
 * @example
 * npx node scripts/check-imports.ts
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';

/** Folders and files of `packages/relay/src`, from the ground up. */
const floors: readonly (readonly string[])[] = [
  ['bounded-map.ts', 'digest.ts', 'event-loop.ts', 'limit-kinds.ts', 'make-folder.ts', 'queue.ts'],
  ['rotation.ts'],
  [
    'account-limits.ts',
    'byte-limits.ts',
    'connection-limits.ts',
    'fair-slots.ts',
    'known-accounts.ts',
    'memory-limits.ts',
    'peer-limits.ts',
    'step-turns.ts',
  ],
  ['context.ts', 'limits.ts'],
  ['limit-rules.ts'],
  ['memory.ts', 'open-files.ts'],
  ['clock.ts', 'config', 'observability'],
  ['crypto', 'keys', 'storage'],
  ['sessions', 'tls'],
  ['dispatch', 'jobs'],
  ['blocks', 'pages', 'policy', 'registration', 'usage'],
  ['accounts'],
  ['about', 'auth', 'blobs', 'channels', 'groups', 'messages', 'web'],
  ['federation', 'notifications'],
  ['admin', 'backup', 'modules.ts', 'operations', 'transport'],
  ['create-context.ts', 'serve-clients.ts'],
  ['relay.ts'],
  ['dev'],
  ['commands', 'index.ts'],
  ['main.ts'],
];

/** Any import or re-export of a relative path. */
const importPattern = /(?:\bfrom|\bimport\(?)\s*'(\.{1,2}\/[^']+)'/g;

/** Finds imports that do not go down to a lower floor. */
export function findUpwardImports(file: string, text: string): string[] {
  const own = roomOf(file);
  const floor = floorOf(own);
  if (floor === undefined) return [`${own} stands on no floor: add it to scripts/check-imports.ts`];
  if (file === 'context.ts') return [];
  return [...text.matchAll(importPattern)].flatMap(([, path = '']) => {
    const imported = normalize(join(dirname(file), path));
    const target = roomOf(imported);
    const below = floorOf(target);
    const goesDown = target === own || (below !== undefined && below < floor);
    return goesDown ? [] : [`${file} imports ${target}, which is not on a lower floor`];
  });
}

function roomOf(file: string): string {
  return file.split('/', 1)[0] as string;
}

function floorOf(room: string): number | undefined {
  const floor = floors.findIndex((rooms) => rooms.includes(room));
  return floor === -1 ? undefined : floor;
}

if (import.meta.main) {
  const root = dirname(import.meta.dirname);
  const source = join(root, 'packages/relay/src');
  const files = execFileSync('git', ['ls-files', '*.ts'], { cwd: source, encoding: 'utf8' });
  const faults = files
    .split('\n')
    .filter((file) => file !== '')
    .flatMap((file) => findUpwardImports(file, readFileSync(join(source, file), 'utf8')));
  for (const fault of faults) process.stdout.write(`${relative(root, source)}/${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
}

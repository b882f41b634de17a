import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkDataFolder } from '../../src/keys/data-folder.ts';
import { temporaryFolder } from '../support/folder.ts';

/** Modes, and what becomes of a data folder that has them. */
const folders = [
  { mode: 0o700, outcome: 'accepted' },
  { mode: 0o750, outcome: 'told' },
  { mode: 0o755, outcome: 'told' },
  // Users cannot replace each other's files: a file system that was just mounted.
  { mode: 0o1777, outcome: 'told' },
  { mode: 0o777, outcome: 'refused' },
  { mode: 0o702, outcome: 'refused' },
];

for (const { mode, outcome } of folders) {
  for (const part of ['.', 'keys']) {
    test(`a data folder whose part ${part} has mode ${mode.toString(8)} is ${outcome}`, async () => {
      using data = temporaryFolder();
      mkdirSync(join(data.path, 'keys'), { mode: 0o700 });
      const folder = join(data.path, part);
      chmodSync(folder, mode);
      const warned: unknown[] = [];
      const log = { warn: (fields: object) => void warned.push(fields) };
      const checked = checkDataFolder(data.path, { log } as never);
      const found = mode.toString(8).padStart(4, '0');
      if (outcome === 'refused')
        await expect(checked).rejects.toThrow(`run \`chmod 700 ${folder}\``);
      else await checked;
      expect(warned).toEqual(outcome === 'told' ? [{ folder, mode: found }] : []);
    });
  }
}

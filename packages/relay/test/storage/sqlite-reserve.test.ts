/** The space kept for a start on a full disk. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepReserve, openWithReserve } from '../../src/storage/sqlite/reserve.ts';

test.each([
  ['SQLite says that the disk is full', { errcode: 13 }, true],
  ['the system has no space for the log', { code: 'ENOSPC' }, true],
  ['the quota of the disk is used up', { code: 'EDQUOT' }, true],
  ['the file is missing', { code: 'ENOENT' }, false],
])('if %s, the reserve makes room: %o', (_, reason, isUsed) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-reserve-'));
  const reserve = join(folder, 'reserve');
  keepReserve(reserve);
  const failure = Object.assign(new Error('no start'), reason);
  const open = () => {
    if (existsSync(reserve)) throw failure;
    return 'open';
  };
  if (isUsed) expect(openWithReserve(reserve, open)).toBe('open');
  else expect(() => openWithReserve(reserve, open)).toThrow(failure);
  expect(existsSync(reserve)).toBe(!isUsed);
  rmSync(folder, { recursive: true });
});

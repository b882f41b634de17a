import { statfs } from 'node:fs/promises';
import { type Check, failed, ok, warning } from './check.ts';

const MiB = 1_048_576;

/** Bytes below which there is a warning, and below which the relay may accept no writes soon. */
const little = 1_024 * MiB;
const nearlyNone = 32 * MiB;

/** Whether the data folder's disk has room. */
export const diskSpace: Check = {
  name: 'disk space',
  scope: 'local',
  needs: ['data folder'],
  cure: 'correct the setting `data`',
  async find({ config: { data } }) {
    const { bavail, bsize } = await statfs(data);
    return spaceFinding(data, bavail * bsize);
  },
};

/** Judges the bytes that are free for the relay's user. */
export function spaceFinding(folder: string, free: number) {
  const seen = `${Math.floor(free / MiB).toLocaleString('en-US')} MiB free at ${folder}`;
  const cure = 'make room on the disk, or move the data folder to a larger one';
  if (free < nearlyNone) return failed(seen, cure);
  return free < little ? warning(seen, cure) : ok(seen);
}

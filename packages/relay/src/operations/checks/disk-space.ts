import { type DiskSize, diskFloor, foldersOf, readDiskSize } from '../../storage/disk-room.ts';
import { existingFolder } from '../../storage/free-bytes.ts';
import { type Check, type Finding, failed, ok, skipped, warning } from './check.ts';

const MiB = 1_048_576;

const onServer = 'the database is on the disk of its server: watch it there';

/** Whether the disks have room to which the relay writes. */
export const diskSpace: Check = {
  name: 'disk space',
  scope: 'local',
  needs: ['data folder'],
  cure: 'correct the settings `data` and `blobs.folder`',
  async find({ config }) {
    const folders = Object.values(foldersOf(config));
    if (folders.length === 0) return skipped(onServer);
    const findings: Finding[] = [];
    for (const folder of folders) {
      // A relay makes the folder of attachments when it starts.
      const size = await readDiskSize(existingFolder(folder));
      findings.push(spaceFinding(folder, size, config.limits));
    }
    if (config.storage.engine === 'postgres') findings.push(ok(onServer));
    const bad = findings.filter(({ outcome }) => outcome !== 'ok');
    const worst = bad.find(({ outcome }) => outcome === 'failed') ?? bad[0];
    return worst ?? ok(findings.map(({ seen }) => seen).join(', '));
  },
};

/** Judges the free bytes by the limit below which a relay refuses calls that write. */
export function spaceFinding(
  folder: string,
  { total, free }: DiskSize,
  { diskFree }: { readonly diskFree: number },
): Finding {
  const shown = (bytes: number) => `${Math.floor(bytes / MiB).toLocaleString('en-US')} MiB`;
  const floor = diskFloor(diskFree, total);
  const seen = `${shown(free)} free at ${folder}`;
  const cure =
    'make room on the disk, or move the folder to a larger one; `posthouse compact` gives back what the database does not use';
  if (free < floor) {
    return failed(`${seen}: with less than ${shown(floor)} the relay stores nothing new`, cure);
  }
  return free < 2 * floor ? warning(seen, cure) : ok(seen);
}

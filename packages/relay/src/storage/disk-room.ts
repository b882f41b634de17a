/** How much room the disks have that this process writes to, and whether that is too little. */
import { statfs } from 'node:fs/promises';
import type { RelayConfig } from '../config/index.ts';
import type { DiskPart, DiskRoom, RelayContext } from '../context.ts';
import { diskHasRoomAgain, diskLow, diskMeasured } from '../observability/storage-events.ts';

/** Milliseconds between two looks: room that was made is noticed within ten seconds. */
const interval = 2_000;
/** The floor by default: so many bytes, or the share of a small disk. */
const defaultFloor = 524_288_000;
const defaultShare = 0.05;
/** Writes begin again at more than the floor, so that they do not stop and begin all the time. */
const resumeShare = 1.1;

/** Bytes of a file system: all, and those that are free for the relay's user. */
export interface DiskSize {
  readonly total: number;
  readonly free: number;
}

/** Reads the size of a folder's file system. */
export async function readDiskSize(folder: string): Promise<DiskSize> {
  const { blocks, bavail, bsize } = await statfs(folder);
  return { total: blocks * bsize, free: bavail * bsize };
}

/**
 * Returns the free bytes below which calls that write are refused.
 *
 * @param diskFree the limit; 0 for the default: 500 MiB, or 5 % of a smaller disk
 */
export function diskFloor(diskFree: number, total: number): number {
  return diskFree === 0 ? Math.min(defaultFloor, Math.floor(total * defaultShare)) : diskFree;
}

/** Returns the folders whose disks a relay writes to; a database server has disks of its own. */
export function foldersOf({
  storage,
  data,
  blobs,
}: Pick<RelayConfig, 'storage' | 'data' | 'blobs'>): Partial<Record<DiskPart, string>> {
  return {
    ...(storage.engine === 'sqlite' && { data }),
    ...(blobs.folder !== '' && { blobs: blobs.folder }),
  };
}

interface Disk {
  readonly part: DiskPart;
  readonly folder: string;
  size: DiskSize | undefined;
  isLow: boolean;
}

/** Looks at the disks again and again, without blocking the event loop. */
export class DiskWatch implements DiskRoom, Disposable {
  readonly #parts: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly #disks: readonly Disk[];
  #timer: Disposable | undefined;
  #hasEnded = false;

  /** @param folders the folder of each part that this process writes to a disk of this machine */
  constructor(
    folders: Partial<Record<DiskPart, string>>,
    parts: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>,
  ) {
    this.#parts = parts;
    this.#disks = Object.entries(folders).map(([part, folder]) => ({
      ...{ part: part as DiskPart, folder, size: undefined, isLow: false },
    }));
  }

  /** Looks for the first time; then again and again until it is disposed of. */
  async start(): Promise<void> {
    await this.#look();
  }

  isLow(part: DiskPart, more = 0): boolean {
    const disk = this.#disks.find((one) => one.part === part);
    if (disk === undefined) return false;
    if (disk.isLow || disk.size === undefined || more === 0) return disk.isLow;
    return disk.size.free - more < this.#floorOf(disk.size);
  }

  [Symbol.dispose](): void {
    this.#hasEnded = true;
    this.#timer?.[Symbol.dispose]();
  }

  async #look(): Promise<void> {
    for (const disk of this.#disks) {
      // A folder that cannot be asked about now, for example of a lost mount, keeps its state.
      const size = await readDiskSize(disk.folder).catch(() => undefined);
      if (size !== undefined && !this.#hasEnded) this.#note(disk, size);
    }
    if (this.#hasEnded || this.#disks.length === 0) return;
    this.#timer = this.#parts.clock.after(interval, () => void this.#look());
  }

  #note(disk: Disk, size: DiskSize): void {
    disk.size = size;
    const { part, folder, isLow } = disk;
    const floor = this.#floorOf(size);
    diskMeasured(this.#parts, { part, free: size.free });
    disk.isLow = size.free < (isLow ? floor * resumeShare : floor);
    if (disk.isLow === isLow) return;
    const facts = { part, folder, free: size.free, floor };
    if (disk.isLow) diskLow(this.#parts, facts);
    else diskHasRoomAgain(this.#parts, facts);
  }

  #floorOf({ total }: DiskSize): number {
    return diskFloor(this.#parts.limits.diskFree, total);
  }
}

/** A file system of its own that can be filled up. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const size = '16m';

/** A mounted file system; only where the user may mount one. */
export class SmallDisk implements Disposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Tells whether the user may mount a file system. */
  static isPossible(): boolean {
    const disk = SmallDisk.mount();
    disk?.[Symbol.dispose]();
    return disk !== undefined;
  }

  /** Returns `undefined` if the user may not mount a file system. */
  static mount(): SmallDisk | undefined {
    const path = mkdtempSync(join(tmpdir(), 'posthouse-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], {
        stdio: 'ignore',
      });
      return new SmallDisk(path);
    } catch {
      rmSync(path, { recursive: true });
      return undefined;
    }
  }

  /** Leaves no byte free. */
  fill(): void {
    const piece = Buffer.alloc(4_096, 1);
    try {
      for (;;) writeFileSync(this.#filler, piece, { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }

  /** Leaves so many bytes free, or a page less. */
  fillTo(free: number): void {
    const { bavail, bsize } = statfsSync(this.path);
    const taken = Math.max(0, bavail * bsize - free);
    writeFileSync(this.#filler, Buffer.alloc(taken, 1), { flag: 'a' });
  }

  /** Undoes {@link fill} and {@link fillTo}. */
  free(): void {
    rmSync(this.#filler, { force: true });
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['-l', this.path]);
    rmSync(this.path, { recursive: true });
  }

  get #filler(): string {
    return join(this.path, 'filler');
  }
}

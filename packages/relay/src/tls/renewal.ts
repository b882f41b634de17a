import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { RelayContext } from '../context.ts';
import { certificateReloaded, certificateReloadFailed } from '../observability/events.ts';
import type { TlsFiles } from './configured-files.ts';

/** Milliseconds between two looks at the files, and between two readings that find no change. */
const interval = 60_000;
const longest = 12 * 3_600_000;

/** Where a certificate comes from. */
export interface CertificateSource {
  /** Its files; none if the relay makes it itself. */
  readonly paths: readonly string[];
  /** @throws Error if they cannot be used */
  readonly read: () => Promise<TlsFiles>;
}

interface RenewalParts {
  readonly context: Pick<RelayContext, 'clock' | 'log' | 'metrics'>;
  /** Serves with a certificate from now on, without interrupting connections. */
  readonly use: (files: TlsFiles) => void;
}

/**
 * Looks at the certificate files each minute, and uses them when they have changed. While they cannot
 * be used, the certificate before stays in force.
 */
export class CertificateRenewal implements Disposable {
  readonly #parts: RenewalParts;
  #source: CertificateSource | undefined;
  /** Of the files that were read last, good or bad. */
  #version = '';
  #readAt = 0;
  #timer: Disposable | undefined;
  #hasEnded = false;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Begins to look; the files were just read. */
  async start(source: CertificateSource, files: TlsFiles): Promise<void> {
    this.#source = source;
    this.#note(await versionOf(source));
    certificateReloaded(this.#parts.context, { secondsLeft: secondsLeft(files), isFirst: true });
    this.#schedule();
  }

  /**
   * Uses other files, or the same ones again.
   * @throws Error if they cannot be used; those before stay in force, and are looked at
   */
  async change(source: CertificateSource): Promise<void> {
    const version = await versionOf(source);
    const files = await source.read();
    this.#source = source;
    this.#note(version);
    this.#use(files);
  }

  [Symbol.dispose](): void {
    this.#hasEnded = true;
    this.#timer?.[Symbol.dispose]();
  }

  #schedule(): void {
    if (this.#hasEnded) return;
    this.#timer = this.#parts.context.clock.after(interval, () => {
      void this.#look().finally(() => this.#schedule());
    });
  }

  async #look(): Promise<void> {
    const { context } = this.#parts;
    const source = this.#source as CertificateSource;
    const version = await versionOf(source);
    const isOld = context.clock.monotonic() - this.#readAt >= longest;
    if (version === this.#version && !isOld) return;
    this.#note(version);
    try {
      this.#use(await source.read());
    } catch (error) {
      certificateReloadFailed(context, error);
    }
  }

  #note(version: string): void {
    this.#version = version;
    this.#readAt = this.#parts.context.clock.monotonic();
  }

  #use(files: TlsFiles): void {
    this.#parts.use(files);
    certificateReloaded(this.#parts.context, { secondsLeft: secondsLeft(files), isFirst: false });
  }
}

/** Returns a text that is another one after a file, its mode or its owner was changed. */
async function versionOf({ paths }: CertificateSource): Promise<string> {
  const versions = paths.map(async (path) => {
    try {
      const { ctimeNs, size, ino } = await stat(path, { bigint: true });
      return `${path} ${ctimeNs} ${size} ${ino}`;
    } catch (error) {
      return `${path} ${(error as NodeJS.ErrnoException).code}`;
    }
  });
  return (await Promise.all(versions)).join('\n');
}

/** Whole seconds until a certificate expires, in real time; negative afterwards. */
function secondsLeft({ cert }: TlsFiles): number {
  return Math.floor((new X509Certificate(cert).validToDate.getTime() - Date.now()) / 1_000);
}

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
 * be used, or are not valid now, the certificate before stays in force, and they are read each minute.
 */
export class CertificateRenewal implements Disposable {
  readonly #parts: RenewalParts;
  #source: CertificateSource | undefined;
  /** Of the files that were read last, good or bad. */
  #version = '';
  #readAt = 0;
  #inForce: Validity | undefined;
  /** Why the files that were read last are not in force. */
  #failure: string | undefined;
  #timer: Disposable | undefined;
  #hasEnded = false;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Begins to look; the files were read at the beginning of the relay's start, which may take long. */
  async start(source: CertificateSource, files: TlsFiles): Promise<void> {
    this.#source = source;
    const version = await versionOf(source);
    const found = await source.read().catch(() => undefined);
    const isSame = found?.cert === files.cert && found.key === files.key;
    // Without a version, the first look finds the change.
    this.#note(isSame ? version : '');
    this.#inForce = validityOf(files);
    const left = secondsLeft(this.#inForce);
    certificateReloaded(this.#parts.context, { secondsLeft: left, isFirst: true });
    this.#schedule();
  }

  /**
   * Uses other files, or the same ones again.
   * @throws Error if they cannot be used; those before stay in force, and are looked at
   */
  async change(source: CertificateSource): Promise<void> {
    const version = await versionOf(source);
    const files = await source.read();
    this.#use(source, files);
    this.#source = source;
    this.#note(version);
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
    // Another one was read and taken over meanwhile, and looked at from then on.
    if (source !== this.#source) return;
    const isOld = context.clock.monotonic() - this.#readAt >= longest;
    const isNew = version !== this.#version || isOld;
    if (!isNew && this.#failure === undefined) return;
    if (isNew) this.#note(version);
    // What was read may be older than what was taken over meanwhile.
    const isLast = () => source === this.#source && version === this.#version;
    try {
      const files = await source.read();
      if (isLast()) this.#use(source, files);
    } catch (error) {
      if (!isLast()) return;
      const failure = String(error);
      if (!isNew && failure === this.#failure) return;
      this.#failure = failure;
      certificateReloadFailed(context, error);
    }
  }

  #note(version: string): void {
    this.#version = version;
    this.#readAt = this.#parts.context.clock.monotonic();
  }

  /** @throws Error if they are not valid now, and those in force are */
  #use({ paths }: CertificateSource, files: TlsFiles): void {
    const validity = validityOf(files);
    const fault = faultOf(validity);
    const isValid = this.#inForce !== undefined && faultOf(this.#inForce) === undefined;
    if (fault !== undefined && isValid) {
      throw new Error(`${paths[0]}: ${fault}: put a certificate there that is valid now`);
    }
    this.#parts.use(files);
    this.#inForce = validity;
    this.#failure = undefined;
    const left = secondsLeft(validity);
    certificateReloaded(this.#parts.context, { secondsLeft: left, isFirst: false });
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

/** When a certificate is valid, in real time. */
interface Validity {
  readonly from: Date;
  readonly to: Date;
}

function validityOf({ cert }: TlsFiles): Validity {
  const { validFromDate: from, validToDate: to } = new X509Certificate(cert);
  return { from, to };
}

/** Returns why a certificate is not valid now; `undefined` if it is. */
function faultOf({ from, to }: Validity): string | undefined {
  const now = Date.now();
  if (now >= to.getTime()) return `expired at ${to.toISOString()}`;
  if (now < from.getTime()) return `is not valid before ${from.toISOString()}`;
  return undefined;
}

/** Whole seconds until a certificate expires; negative afterwards. */
function secondsLeft({ to }: Validity): number {
  return Math.floor((to.getTime() - Date.now()) / 1_000);
}

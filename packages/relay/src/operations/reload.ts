/** Takes over a changed configuration while the relay runs. */
import { changedSettings, liveLimits, needsRestart, type RelayConfig } from '../config/index.ts';
import type { RelayContext } from '../context.ts';
import type { RelayLimits } from '../limits.ts';
import { configurationReloaded } from '../observability/events.ts';

/** What became of the settings that changed, by their paths. */
export interface Reloaded {
  /** In force now. */
  readonly applied: readonly string[];
  /** In force after a restart. */
  readonly needRestart: readonly string[];
}

interface ReloadParts {
  readonly context: Pick<RelayContext, 'jobs' | 'limits' | 'log' | 'metrics'>;
  /**
   * Reads the certificate files and serves with them.
   * @throws Error if they cannot be used; the old ones stay in force
   */
  readonly useCertificate: (tls: RelayConfig['tls']) => Promise<void>;
  readonly useProxies: (proxies: readonly string[]) => void;
}

/** Jobs that read files and rows which an operator changes. */
const reading = [
  'blocks.changes',
  'federation.registry',
  'federation.changes',
  'registry.file',
] as const;

/** The configuration that a relay runs with, as far as it can change. */
export class Reload {
  readonly #parts: ReloadParts;
  #config: RelayConfig;

  constructor(config: RelayConfig, parts: ReloadParts) {
    this.#parts = parts;
    // The limits in force are changed in place, those of the configuration are not.
    this.#config = { ...config, limits: { ...config.limits } };
  }

  /**
   * Applies what can be applied, all or nothing, and has registry and blocks read again.
   *
   * @param next complete and checked
   * @throws Error if the certificate files cannot be used: nothing is changed then
   */
  async apply(next: RelayConfig): Promise<Reloaded> {
    const { context, useCertificate, useProxies } = this.#parts;
    // What may fail comes first. The files may be others under the same names.
    await useCertificate(next.tls);
    const changed = changedSettings(this.#config, next);
    // Other files of another mode are not in force before it is.
    const hasOtherMode = changed.includes('tls.mode');
    const waits = (path: string) => needsRestart(path) || (hasOtherMode && path.startsWith('tls.'));
    const needRestart = changed.filter(waits);
    const applied = changed.filter((path) => !waits(path));
    const limits = context.limits as { -readonly [K in keyof RelayLimits]: RelayLimits[K] };
    for (const name of liveLimits) limits[name] = next.limits[name];
    useProxies(next.trustedProxies);
    context.log.level = next.log;
    this.#config = {
      ...this.#config,
      ...{ trustedProxies: next.trustedProxies, log: next.log },
      tls: { ...this.#config.tls, ...(hasOtherMode ? {} : filesOf(next)) },
      limits: { ...limits },
    };
    for (const job of reading) context.jobs.wake(job);
    configurationReloaded(context, { applied, needRestart });
    return { applied, needRestart };
  }
}

const filesOf = ({ tls: { certificate, key } }: RelayConfig) => ({ certificate, key });

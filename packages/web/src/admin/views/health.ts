/** What `/health` says, in sentences. */
import { count } from '../parts.tsx';

/** The answer of `/health`. */
export interface Health {
  readonly version: string;
  readonly schema: number;
  readonly status: string;
  readonly storage: string;
  readonly disk: string;
  readonly bus: string;
  readonly clock: string;
  readonly registry: string;
  readonly certificate: string;
  readonly policy: string;
  /** Of which clients showed today that a restore lost something. */
  readonly losses: { readonly groups: number; readonly channels: number };
  readonly peers: { readonly connected: number; readonly failing: number };
}

type Part = Exclude<keyof Health, 'version' | 'schema' | 'status' | 'losses' | 'peers'>;

const sentences: { readonly [P in Part]: Readonly<Record<string, string>> } = {
  storage: {
    lost: 'The database cannot be reached: most calls are refused.',
    'read-only':
      'The database accepted no write last time: its disk is full, or another process locks it.',
  },
  disk: { low: 'A disk has less room than limits.diskFree: what would store anything is refused.' },
  bus: { lost: 'NATS cannot be reached: what other processes do is noticed late.' },
  clock: { ahead: 'The clock jumped ahead: nothing is deleted for a day, until this is sure.' },
  registry: {
    lost: 'The registry cannot be read: what was read before serves for a while.',
  },
  certificate: {
    expiring: 'The certificate ends in less than seven days.',
    unusable: 'The certificate files cannot be used: the certificate before stays in force.',
  },
  policy: { failing: 'The policy program does not run, or gave no answer.' },
};

/** Says what is wrong. */
export function faultsOf(health: Health): string[] {
  const found = (Object.keys(sentences) as Part[]).flatMap((part) => {
    const state = health[part];
    if (state === 'ok' || state === 'none') return [];
    return [sentences[part][state] ?? `${part}: ${state}.`];
  });
  const { groups, channels } = health.losses;
  if (groups + channels === 0) return found;
  const lost = `A restore lost changes of ${count(groups)} groups and ${count(channels)} channels, as clients showed today: the log names them, and “Backup and restore” of operations.md says what to do.`;
  return [...found, lost];
}

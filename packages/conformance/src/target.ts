import { readFile } from 'node:fs/promises';
import { Network, type RelayEntry } from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import type { RelaySeats } from './seat/relay-seats.ts';
import type { Answer } from './transport/answer.ts';

/** The relay under test: its addresses and its entry in the registry. */
export interface Target {
  readonly network: Network;
  /** HTTPS base address, such as `https://127.0.0.1:8443/svc/v1`. */
  readonly baseUrl: string;
  readonly entry: RelayEntry;
  /** Certificate authority in PEM, if it is not a public one. */
  readonly ca: string | undefined;
  /** Code of an invite with many uses, for a relay that takes new accounts by invite. */
  readonly invite?: string;
  /** Relays of the kit's own, if the relay under test can reach them. */
  readonly seats?: RelaySeats;
  /** Restarts the relay, and resolves when it answers; absent if the kit cannot. */
  readonly restart?: () => Promise<void>;
  /** Whether each check closes the groups and channels that it made: the relay is in use. */
  readonly cleansUp?: boolean;
  /** Replaces answers before a check reads them; tests use it to make checks fail. */
  readonly alter?: (method: string, answer: Answer) => Answer;
}

export interface TargetOptions {
  /** HTTPS base address of the relay; its entry in the registry must name it. */
  readonly relay: string;
  /** Path of the static registry file `{context, relays}`. */
  readonly registry: string;
  readonly ca?: string;
  /** Service word, `svc` by default. */
  readonly word?: string;
}

/**
 * Reads the registry file and the certificate authority, and finds the relay's entry.
 * @throws Error if the registry has no entry for the relay
 */
export async function loadTarget(options: TargetOptions): Promise<Target> {
  const file = await readRegistry(options.registry);
  const network = new Network({
    context: file.context,
    primitives: nodePrimitives,
    ...(options.word === undefined ? {} : { word: options.word }),
  });
  const entry = file.relays.find(({ endpoint }) => endpoint === options.relay.replace(/\/$/, ''));
  if (entry === undefined) {
    const known = file.relays.map(({ endpoint }) => endpoint).join(', ') || 'none';
    throw new Error(`the registry has no relay at ${options.relay}; it has ${known}`);
  }
  return {
    network,
    baseUrl: entry.endpoint,
    entry,
    ca: options.ca === undefined ? undefined : await readFile(options.ca, 'utf8'),
  };
}

async function readRegistry(path: string): Promise<{
  readonly context: string;
  readonly relays: readonly RelayEntry[];
}> {
  try {
    const { context, relays } = parseJson(await readFile(path, 'utf8')) as JsonObject;
    if (typeof context === 'string' && Array.isArray(relays)) {
      return { context, relays: relays as unknown as RelayEntry[] };
    }
  } catch (cause) {
    throw new Error(`${path}: ${(cause as Error).message}`, { cause });
  }
  throw new Error(`${path}: a registry file is an object with context and relays`);
}

/** Bounds the challenges that wait for their proof (02 §9.2, §18). */
import { ProtocolError } from '@posthouse/protocol';
import { customerNetwork } from '../config/ip-address.ts';
import type { ChallengeRoom, IssuedChallenge, RelayContext } from '../context.ts';

/** Expired challenges that are forgotten for a new one. */
const forgottenAtOnce = 16;

/** A challenge that waits, with what it counts for. */
interface Waiting extends IssuedChallenge {
  readonly network: string;
}

/**
 * Counts the challenges that this process issued and that were neither used here nor expired. They are
 * in memory, since a count for each address would be one row more for each login: a restart forgets
 * them, and their rows expire.
 *
 * An address makes room for its own challenges. If there are too many in all, the network with the most
 * does, so that a stranger cannot push out the challenge of a login under way elsewhere.
 */
export class WaitingChallenges implements ChallengeRoom {
  readonly #context: Pick<RelayContext, 'clock' | 'limits'>;
  /** By hash; the oldest first, as in all sets here. */
  readonly #all = new Map<string, Waiting>();
  readonly #addresses = new Map<string, Set<Waiting>>();
  /** By address and account. */
  readonly #accounts = new Map<string, Set<Waiting>>();
  readonly #networks = new Map<string, Set<Waiting>>();
  /** Networks by the number of their challenges, up to the largest number of any. */
  readonly #bySize: Set<string>[] = [];

  constructor(context: Pick<RelayContext, 'clock' | 'limits'>) {
    this.#context = context;
  }

  take(challenge: IssuedChallenge): string | undefined {
    this.#forgetExpired();
    const waiting = { ...challenge, network: customerNetwork(challenge.address) };
    const oldest = this.#toEnd(waiting)?.hash;
    if (oldest !== undefined) this.forget(oldest);
    this.#add(waiting);
    return oldest;
  }

  forget(hash: string): void {
    const waiting = this.#all.get(hash);
    if (waiting === undefined) return;
    this.#all.delete(hash);
    removeFrom(this.#addresses, waiting.address, waiting);
    removeFrom(this.#accounts, accountKey(waiting), waiting);
    const size = this.#sizeOf(waiting.network);
    removeFrom(this.#networks, waiting.network, waiting);
    this.#move(waiting.network, size, size - 1);
  }

  /**
   * Returns the challenge that makes room for a new one, if one has to.
   * @throws ProtocolError `rate_limited` if there is none that may
   */
  #toEnd(waiting: Waiting): Waiting | undefined {
    const { challenges, challengesOfAccount, challengesPerAddress } = this.#context.limits;
    const ofAccount = this.#accounts.get(accountKey(waiting)) ?? none;
    if (ofAccount.size >= challengesOfAccount) return oldestOf(ofAccount);
    const ofAddress = this.#addresses.get(waiting.address) ?? none;
    if (ofAddress.size >= challengesPerAddress) return oldestOf(ofAddress);
    if (this.#all.size < challenges) return undefined;
    const [name = ''] = this.#bySize.at(-1) ?? [];
    const largest = this.#networks.get(name) ?? none;
    // Afterwards that network has no fewer than this one.
    const isOther = largest.size > this.#sizeOf(waiting.network) + 1;
    const oldest = oldestOf(isOther ? largest : ofAddress);
    if (oldest === undefined) throw this.#refusal();
    return oldest;
  }

  #refusal(): ProtocolError {
    const [first] = this.#all.values();
    const wait = (first?.expiresAt ?? 0) - this.#context.clock.now();
    return new ProtocolError('rate_limited', 'too many logins are under way: try again later', {
      data: { retry_after: Math.max(1, wait) },
    });
  }

  #add(waiting: Waiting): void {
    const { hash, address, network } = waiting;
    this.#all.set(hash, waiting);
    addTo(this.#addresses, address, waiting);
    addTo(this.#accounts, accountKey(waiting), waiting);
    const size = this.#sizeOf(network);
    addTo(this.#networks, network, waiting);
    this.#move(network, size, size + 1);
  }

  /** One new challenge takes the place of one: after several, those that expired at one moment are gone. */
  #forgetExpired(): void {
    const now = this.#context.clock.now();
    let left = forgottenAtOnce;
    for (const { hash, expiresAt } of this.#all.values()) {
      if (expiresAt > now || left === 0) return;
      this.forget(hash);
      left -= 1;
    }
  }

  #sizeOf(network: string): number {
    return this.#networks.get(network)?.size ?? 0;
  }

  #move(network: string, from: number, to: number): void {
    this.#bySize[from]?.delete(network);
    if (to > 0) {
      this.#bySize[to] ??= new Set();
      this.#bySize[to].add(network);
    }
    while (this.#bySize.length > 0 && (this.#bySize.at(-1)?.size ?? 0) === 0) this.#bySize.pop();
  }
}

const none: ReadonlySet<Waiting> = new Set();

function oldestOf(waiting: ReadonlySet<Waiting>): Waiting | undefined {
  const [oldest] = waiting;
  return oldest;
}

function accountKey({ address, account }: Waiting): string {
  return `${address} ${account}`;
}

function addTo(sets: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const set = sets.get(key) ?? new Set();
  set.add(waiting);
  sets.set(key, set);
}

function removeFrom(sets: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const set = sets.get(key);
  set?.delete(waiting);
  if (set?.size === 0) sets.delete(key);
}

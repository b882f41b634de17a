/** The route of a move: signed, published, and confirmed (03 §12.1 steps 2 and 3, 07 §B11). */
import type { AccountRoute, AccountSigner } from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore } from '../core.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  adoptState,
  ClientError,
  draftFor,
  isClientError,
  isRefusal,
  knownState,
  makeRouteDraft,
  publishRoute,
  refreshHome,
  resolveRouteAt,
  routes,
  storeMove,
} from '../taken.ts';
import type { MoveRecord } from './move-rows.ts';

/** What became of a move's route: in force, given way to a higher one, or not known yet. */
type Outcome =
  | { readonly kind: 'in-force' }
  | { readonly kind: 'superseded'; readonly by: string }
  | { readonly kind: 'open'; readonly draft: AccountRoute };

/** How often one run begins again after the new relay refused the route for good. */
const restarts = 2;

export class MovedRoute {
  /** To the new relay, with the account key. */
  readonly connection: RelayConnection;
  readonly #core: AccountCore;
  readonly #signer: AccountSigner;
  readonly #signal: AbortSignal;
  #restarts = 0;
  /** Whether the route was signed or sent by this run, so that its outcome is not unknown yet. */
  #isOwn = false;

  constructor(
    core: AccountCore,
    options: {
      readonly connection: RelayConnection;
      readonly signer: AccountSigner;
      readonly signal: AbortSignal;
    },
  ) {
    this.#core = core;
    this.connection = options.connection;
    this.#signer = options.signer;
    this.#signal = options.signal;
  }

  /** Signs the route; from the commit on it counts as sent, because it may be at any time. */
  async sign(record: MoveRecord): Promise<void> {
    const inTransaction = async (tx: StoreWriter) => {
      await storeMove(tx, record, { ...record, step: 'publish', isRouteSent: true });
    };
    await makeRouteDraft(this.#core, this.connection, { signer: this.#signer, inTransaction });
    this.#isOwn = true;
  }

  /**
   * Publishes the route. After a crash or a lost answer the relays are asked first what became of
   * it; then the same draft is published again.
   *
   * @throws ClientError `move_conflict` if a higher route names another relay
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async publish(record: MoveRecord): Promise<void> {
    if (!this.#isOwn) await this.#ask(record);
    let outcome = await this.#outcome(record);
    if (outcome.kind === 'open') {
      const { draft } = outcome;
      try {
        await this.#send(draft);
        await this.#arrive(record, { isReplicated: true });
        return;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!isClientError(error) || isClientError(error, 'relay_misbehaviour')) throw error;
        await this.#ask(record);
        outcome = await this.#outcome(record);
        if (outcome.kind === 'open') await this.#startOver(record, { error, draft });
      }
    }
    if (outcome.kind === 'in-force') await this.#arrive(record, { isReplicated: false });
    if (outcome.kind === 'superseded') {
      await this.#core.store.write((tx) => storeMove(tx, record, undefined));
      throw movedElsewhere(outcome.by);
    }
  }

  /** Publishes a route that is in force again, until enough relays store it (07 §B12). */
  async replicate(record: MoveRecord): Promise<void> {
    if (record.isReplicated) return;
    const { route } = (await this.#routes()) ?? {};
    // Another device may have moved the account on: then its route is the one to be replicated.
    if (route?.relay_id !== record.to) return;
    const { relay_signature: _signature, ...draft } = route;
    await this.#send(draft);
  }

  async #send(draft: AccountRoute): Promise<void> {
    this.#isOwn = true;
    const act = { signer: this.#signer, signal: this.#signal };
    await publishRoute(this.#core, this.connection, { draft, ...act });
  }

  /** Asks the new relay for the account's route, then others; what they answer is stored. */
  async #ask({ to }: MoveRecord): Promise<void> {
    const core = this.#core;
    const asked = { account: core.account, signal: this.#signal };
    try {
      await resolveRouteAt(core, to, asked);
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!isClientError(error)) throw error;
      if (!isClientError(error, 'relay_unreachable')) return;
      await refreshHome(core, core.account, this.#signal).catch((cause: unknown) => {
        this.#signal.throwIfAborted();
        if (!isClientError(cause)) throw cause;
      });
    }
  }

  async #routes() {
    const { account, store } = this.#core;
    return await store.read((tx) => routes.get(tx, account));
  }

  /** A stored draft is dropped as soon as a route of its revision or a higher one is known. */
  async #outcome({ to }: MoveRecord): Promise<Outcome> {
    const known = await this.#routes();
    const draft = draftFor(to, known);
    if (draft !== undefined) return { kind: 'open', draft };
    const home = known?.route?.relay_id ?? '';
    return home === to ? { kind: 'in-force' } : { kind: 'superseded', by: home };
  }

  /**
   * Signs a route of higher revision and stages the devices again: a staged state that ran out, or
   * a higher revision that the relay knows, is a final answer to this route.
   *
   * @throws the error if it says something else, or says it again
   */
  async #startOver(
    record: MoveRecord,
    { error, draft }: { readonly error: unknown; readonly draft: AccountRoute },
  ): Promise<void> {
    this.#restarts += 1;
    if (!isRefusal(error, 'state_conflict', 'stale_state') || this.#restarts > restarts) {
      throw error;
    }
    await makeRouteDraft(this.#core, this.connection, {
      signer: this.#signer,
      refused: draft,
      inTransaction: async (tx) => {
        await storeMove(tx, record, { ...record, step: 'stage' });
      },
    });
  }

  /** The new relay is the home: what was staged is the account's device state. */
  async #arrive(record: MoveRecord, facts: { readonly isReplicated: boolean }): Promise<void> {
    const { account, clock, store } = this.#core;
    await store.write(async (tx) => {
      const state = record.staged?.state;
      const known = await knownState(tx, account);
      // Whether it took effect is certain only if this device's own publication was answered.
      if (facts.isReplicated && state !== undefined && state.revision > (known?.revision ?? -1)) {
        await adoptState(tx, state, clock.milliseconds());
      }
      await storeMove(tx, record, { ...record, ...facts, step: 'profile' });
    });
  }
}

/** The error of a move that another device of the account overtook. */
export function movedElsewhere(relayId: string): InstanceType<typeof ClientError> {
  return new ClientError(
    'move_conflict',
    `another device moved the account to ${relayId}: move again to leave it`,
  );
}

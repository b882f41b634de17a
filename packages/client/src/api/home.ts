import { homeRelay } from '../accounts/home-relay.ts';
import type { MoveProgress } from '../accounts/move-home.ts';
import { type MoveStep, unfinishedMove } from '../accounts/move-rows.ts';
import type { MovePreview } from '../accounts/preview-move.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import { type Abortable, signalOf, type WithAccountKey } from './options.ts';

/** Options of {@link Home.move}. */
export interface MoveHomeOptions extends WithAccountKey {
  /** Called when a step begins; its errors end the run, and the move can be run again. */
  readonly progress?: (progress: MoveProgress) => void;
  /**
   * Gives up an unfinished move to another relay; its route, if one was sent, is superseded. If one
   * was, the old relay can be named too: the account stays there.
   */
  readonly replace?: boolean;
  /** Of an invite to the new relay, if that takes new accounts by invite only. */
  readonly inviteCode?: string | undefined;
}

/** A move that is not finished. */
export interface UnfinishedMove {
  readonly from: string;
  readonly to: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** The step that is next. */
  readonly step: MoveStep;
  /** Whether it can be given up: its route was not sent yet. */
  readonly canCancel: boolean;
}

/**
 * The account's home relay, and moving to another one.
 *
 * @example
 * const { to, problems } = await account.home.preview(relayId);
 * if (problems.length === 0) await account.home.move(to.relayId);
 */
export class Home {
  readonly #core: AccountCore;
  readonly #syncHome: (signal: AbortSignal) => Promise<void>;
  #isRunning = false;

  /** @param syncHome reads the home relay's timeline, and sends what waits */
  constructor(core: AccountCore, syncHome: (signal: AbortSignal) => Promise<void>) {
    this.#core = core;
    this.#syncHome = syncHome;
  }

  /**
   * Returns the ID of the home relay, without asking a relay.
   *
   * @throws ClientError `not_set_up` if the known route has expired
   * @example
   * console.log(await account.home.relayId());
   */
  relayId(): Promise<string> {
    return homeRelay(this.#core, this.#core.account);
  }

  /**
   * Says what a move to a relay would do, and what stands against it. Nothing is changed anywhere.
   *
   * @throws ClientError `no_relay`; RelayUnreachable, RelayMisbehaviour of the new relay
   * @example
   * for (const problem of (await account.home.preview(relayId)).problems) console.log(problem);
   */
  async preview(relayId: string, options: Abortable = {}): Promise<MovePreview> {
    const { previewMove } = await this.#core.later();
    return await previewMove(this.#core, relayId, signalOf(options));
  }

  /**
   * Moves the account to another home relay (03 §12.1): reads the old relay once more if it answers,
   * publishes device state and route at the new one, and the profile again. After a failure, an
   * abort or a crash it is called again and goes on where it stopped. From the step `publish` on
   * the new relay may be the home already.
   *
   * Messages of the old relay are not copied: `sync` and `follow` go on reading them there.
   *
   * @throws ClientError `invalid_input` if that relay is the home; `account_key_required`, `no_relay`;
   *   `registration_refused` if the relay takes the account only with an invite code, or after its
   *   operator let it in
   * @throws ClientError `move_conflict` if another move is not finished, or another device moved the
   *   account
   * @throws RelayRefused `temporarily_unavailable` also if the account has moved, and too few relays
   *   store its new route yet: call it again
   * @throws RelayUnreachable, RelayMisbehaviour
   * @example
   * await account.home.move(relayId, {
   *   progress: ({ number, of, step }) => console.log(`${number}/${of} ${step}`),
   * });
   */
  async move(relayId: string, options: MoveHomeOptions = {}): Promise<void> {
    const { replace = false } = options;
    const core = this.#core;
    const signal = signalOf(options);
    if (this.#isRunning) {
      throw new ClientError('move_conflict', 'a move is running already: wait for its end');
    }
    this.#isRunning = true;
    try {
      const { beginMove, runMove } = await core.later();
      const signer = await core.accountKey(options.accountKey);
      await beginMove(core, relayId, { replace, signal });
      const { progress = () => {}, inviteCode } = options;
      await runMove(core, { signer, signal, inviteCode, progress, syncHome: this.#syncHome });
    } finally {
      this.#isRunning = false;
    }
  }

  /**
   * Returns the move that is not finished, if there is one: call {@link move} with its `to`.
   *
   * @example
   * const move = await account.home.unfinishedMove();
   * if (move !== undefined) await account.home.move(move.to);
   */
  async unfinishedMove(): Promise<UnfinishedMove | undefined> {
    const record = await this.#core.store.read(unfinishedMove);
    if (record === undefined) return undefined;
    const { from, to, startedAt, step, isRouteSent } = record;
    return { from, to, startedAt, step, canCancel: !isRouteSent };
  }

  /**
   * Gives up an unfinished move whose route was not sent yet; the account stays where it is.
   *
   * @throws ClientError `invalid_input` if there is none; `move_conflict` if the route was sent
   * @example
   * await account.home.cancelMove();
   */
  async cancelMove(): Promise<void> {
    if (this.#isRunning) {
      throw new ClientError('move_conflict', 'the move is running: abort it first');
    }
    const { cancelMove } = await this.#core.later();
    await cancelMove(this.#core);
  }
}

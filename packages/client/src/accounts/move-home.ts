/**
 * Moves the account to another home relay (03 §12.1, 07 §B12). The state of a move is a row of the
 * store, written before each step, and what is signed is stored before it is sent: after a crash or
 * a failure at any point the move is run again and goes on.
 */
import type { AccountSigner } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import {
  accountIdentity,
  ClientError,
  homeRelay,
  isClientError,
  knownProfile,
  mayHaveLeft,
  moveSteps,
  moves,
  noteHomeChange,
  ownKey,
  publishProfile,
  resolveProfile,
  storeMove,
  unfinishedMove,
} from '../taken.ts';
import { MovedRoute, movedElsewhere } from './move-route.ts';
import type { MoveRecord, MoveStep } from './move-rows.ts';
import { stageForMove } from './move-state.ts';

/** The step of a move that begins. */
export interface MoveProgress {
  readonly step: MoveStep;
  /** From 1. */
  readonly number: number;
  readonly of: number;
  /** The relay that the step waits for. */
  readonly relayId: string;
}

export interface MoveOptions {
  readonly signer: AccountSigner;
  readonly signal: AbortSignal;
  /** Of an invite to the new relay. */
  readonly inviteCode?: string | undefined;
  readonly progress: (progress: MoveProgress) => void;
  /** Reads the home relay's timeline, and sends what waits. */
  readonly syncHome: (signal: AbortSignal) => Promise<void>;
}

/**
 * Begins a move, or returns the unfinished one to the same relay. The home relay itself may replace
 * a move whose route was sent: the account then stays there.
 *
 * @param options.replace whether a move to another relay, which is not finished, is given up
 * @throws ClientError `invalid_input` if the relay is the home; `move_conflict`; `no_relay`
 */
export async function beginMove(
  core: AccountCore,
  relayId: string,
  options: { readonly replace: boolean; readonly signal: AbortSignal },
): Promise<MoveRecord> {
  const begun = await core.store.read(unfinishedMove);
  if (begun?.to === relayId) return begun;
  if (begun !== undefined && !options.replace) throw otherMove(begun);
  const from = await homeRelay(core, core.account);
  if (from === relayId && !mayHaveLeft(begun)) {
    throw new ClientError(
      'invalid_input',
      'that relay is the home relay already: choose another one',
    );
  }
  await core.discovery.find(relayId, options.signal);
  return await core.store.write(async (tx) => {
    const other = await unfinishedMove(tx);
    if (other?.to === relayId) return other;
    if (JSON.stringify(other) !== JSON.stringify(begun)) throw otherMove(other ?? begun);
    const floor = Math.max(other?.floor ?? -1, other?.staged?.state.revision ?? -1);
    const record: MoveRecord = {
      ...{ from, to: relayId, startedAt: core.clock.milliseconds(), step: moveSteps[0] },
      ...(other !== undefined && { replaced: other.to }),
      ...(floor >= 0 && { floor }),
      ...{ isRouteSent: false, isReplicated: false },
    };
    // If that move's route did take effect, the relay has records for this account.
    if (other?.isRouteSent) {
      await noteHomeChange(tx, { left: other.to, home: from, now: record.startedAt });
    }
    await moves.put(tx, ownKey, record);
    return record;
  });
}

function otherMove(begun: MoveRecord | undefined): InstanceType<typeof ClientError> {
  return new ClientError(
    'move_conflict',
    `a move to ${begun?.to ?? 'another relay'} is not finished: finish, cancel or replace it`,
  );
}

/**
 * Gives up a move before its route was sent. The relay drops the staged state by itself.
 * @throws ClientError `invalid_input` if none is unfinished; `move_conflict` if the route was sent
 */
export async function cancelMove(core: AccountCore): Promise<void> {
  await core.store.write(async (tx) => {
    const record = await unfinishedMove(tx);
    if (record === undefined) {
      throw new ClientError('invalid_input', 'no move is unfinished: there is nothing to cancel');
    }
    if (record.isRouteSent) {
      throw new ClientError('move_conflict', 'the route was sent: finish the move, or replace it');
    }
    await moves.delete(tx, ownKey);
  });
}

/**
 * Runs the unfinished move to its end.
 *
 * @throws ClientError `move_conflict` if another device moved the account meanwhile
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; the move can be run again
 */
export async function runMove(core: AccountCore, options: MoveOptions): Promise<void> {
  const begun = await core.store.read(unfinishedMove);
  if (begun === undefined) return;
  const identity = accountIdentity(core.network, options.signer, options.inviteCode);
  await using connection = core.connect(begun.to, identity);
  const run = new HomeMove(core, new MovedRoute(core, { ...options, connection }), options);
  await run.toTheEnd();
}

/** One run of a move. */
class HomeMove {
  readonly #core: AccountCore;
  readonly #route: MovedRoute;
  readonly #options: MoveOptions;
  /** Whether the relay that is left answered in this run. */
  #oldRelayAnswers = false;

  constructor(core: AccountCore, route: MovedRoute, options: MoveOptions) {
    this.#core = core;
    this.#route = route;
    this.#options = options;
  }

  async toTheEnd(): Promise<void> {
    const { signal, progress } = this.#options;
    let isFirst = true;
    for (;;) {
      signal.throwIfAborted();
      const record = await this.#core.store.read(unfinishedMove);
      if (record === undefined) return;
      const step = isFirst ? resumedStep(record) : record.step;
      isFirst = false;
      const relayId = step === 'last-sync' ? record.from : record.to;
      progress({ step, relayId, number: moveSteps.indexOf(step) + 1, of: moveSteps.length });
      await this.#run(step, record);
    }
  }

  async #run(step: MoveStep, record: MoveRecord): Promise<void> {
    switch (step) {
      case 'last-sync':
        return await this.#lastSync(record);
      case 'stage':
        return await stageForMove(this.#core, record, {
          ...this.#options,
          connection: this.#route.connection,
          oldRelayAnswers: this.#oldRelayAnswers,
        });
      case 'sign-route':
        return await this.#route.sign(record);
      case 'publish':
        return await this.#route.publish(record);
      case 'profile':
        return await this.#publishProfile(record);
      case 'first-sync':
        await this.#options.syncHome(this.#options.signal);
        return await this.#store(record, { ...record, step: 'replicate' });
      case 'replicate':
        await this.#route.replicate(record);
        return await this.#store(record, undefined);
    }
  }

  /** A relay that does not answer, or a failing one, prevents no move (03 §12.1). */
  async #lastSync(record: MoveRecord): Promise<void> {
    const core = this.#core;
    const { signal, syncHome } = this.#options;
    try {
      await syncHome(signal);
      this.#oldRelayAnswers = true;
      await resolveProfile(core, core.account, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
    }
    const home = await homeRelay(core, core.account);
    if (home === record.from || home === record.replaced) {
      await this.#store(record, { ...record, from: home, step: 'stage' });
      return;
    }
    await this.#store(record, undefined);
    // Another device wants the same, and was faster.
    if (home !== record.to) throw movedElsewhere(home);
  }

  /** A profile that the new relay has already was published there by another device since. */
  async #publishProfile(record: MoveRecord): Promise<void> {
    const core = this.#core;
    const { signal } = this.#options;
    const known = await knownProfile(core, core.account);
    if (known !== undefined && !(await this.#hasProfile())) {
      await publishProfile(core, known, signal);
    }
    await this.#store(record, { ...record, step: 'first-sync' });
  }

  async #hasProfile(): Promise<boolean> {
    const core = this.#core;
    return (await resolveProfile(core, core.account, this.#options.signal)) !== undefined;
  }

  async #store(before: MoveRecord, after: MoveRecord | undefined): Promise<void> {
    await this.#core.store.write((tx) => storeMove(tx, before, after));
  }
}

/** Before the route is sent, devices may have changed: the relay that is left is read again. */
function resumedStep({ step, isRouteSent }: MoveRecord): MoveStep {
  return isRouteSent ? step : 'last-sync';
}

/** What a move to another home relay would do (03 §12), and what stands against it. */
import type { RelayInfo } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import {
  callWithoutSession,
  checkRelayAnswer,
  checkRelayInfo,
  contactRows,
  homeRelay,
  isClientError,
  knownProfile,
  knownState,
  mayHaveLeft,
  outbox,
  unfinishedMove,
  unixSeconds,
} from '../taken.ts';

/** A relay as it describes itself. */
export interface RelayPreview {
  readonly relayId: string;
  /** The relay's claim, for display only. */
  readonly name: string;
  /** Modules of the verified descriptor. */
  readonly capabilities: readonly string[];
  /** Seconds for which it keeps messages at least. */
  readonly messageRetention: number;
  /** Seconds by which its clock is ahead of this device's. */
  readonly clockAhead: number;
}

/** What a move to a relay would do, and what stands against it: the answer of `home.preview`. */
export interface MovePreview {
  readonly from: { readonly relayId: string; readonly answers: boolean };
  readonly to: RelayPreview;
  readonly moves: {
    readonly devices: number;
    readonly contacts: number;
    readonly profile: boolean;
  };
  /** Messages whose outcome is not known yet; the relay that is left goes on delivering them. */
  readonly outbox: number;
  /** Seconds for which the relay that is left keeps messages; absent if it does not answer. */
  readonly oldMessageRetention?: number;
  /** Sentences for people: what prevents the move, or should be considered first. */
  readonly problems: readonly string[];
}

/** Seconds of difference between clocks that relays need not tolerate. */
const clockDifference = 300;

/**
 * Reads the new relay's descriptor and limits, and counts what this device stores.
 *
 * @throws ClientError `no_relay`; RelayUnreachable, RelayMisbehaviour
 */
export async function previewMove(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<MovePreview> {
  const { account, store } = core;
  const from = await homeRelay(core, account);
  const to = await relayPreview(core, relayId, signal);
  const old = await relayPreview(core, from, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (!isClientError(error)) throw error;
    return undefined;
  });
  const profile = await knownProfile(core, account);
  return await store.read(async (tx) => {
    const waiting = (await outbox.list(tx)).length;
    const unfinished = await unfinishedMove(tx);
    const problems = [
      ...(from === relayId && !mayHaveLeft(unfinished)
        ? ['that relay is the home relay already']
        : []),
      ...(unfinished !== undefined && unfinished.to !== relayId
        ? [`a move to ${unfinished.to} is not finished`]
        : []),
      ...(Math.abs(to.clockAhead) > clockDifference
        ? [`the new relay's clock and this machine's differ by ${Math.abs(to.clockAhead)} seconds`]
        : []),
      ...(old === undefined
        ? ['the relay that is left does not answer: messages there can be read when it is back']
        : []),
      ...(old !== undefined && to.messageRetention < old.messageRetention
        ? ['the new relay keeps messages for a shorter time']
        : []),
    ];
    return {
      from: { relayId: from, answers: old !== undefined },
      to,
      moves: {
        devices: (await knownState(tx, account))?.certificates.length ?? 0,
        contacts: (await contactRows(tx)).length,
        profile: profile !== undefined,
      },
      outbox: waiting,
      ...(old !== undefined && { oldMessageRetention: old.messageRetention }),
      problems,
    };
  });
}

async function relayPreview(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<RelayPreview> {
  const relay = await core.discovery.find(relayId, signal);
  const method = 'relay.info';
  const info: RelayInfo = await callWithoutSession(core, { relay, signal }, { method, params: {} });
  checkRelayAnswer('malformed_result', method, () => checkRelayInfo(info, relay.descriptor));
  return {
    relayId,
    name: info.name,
    capabilities: relay.descriptor.capabilities ?? [],
    messageRetention: info.limits.message_retention,
    clockAhead: info.server_time - unixSeconds(core.clock),
  };
}

/** Sends messages: stored first, then sent unchanged until the outcome is known (04 §12, §15). */
import {
  type Authorization,
  type DeviceCertificate,
  ProtocolError,
  type SendRequest,
  sealMessage,
  sha256Text,
} from '@posthouse/protocol';
import { canonicalBytes, type JsonObject } from '@posthouse/protocol/json';
import { deviceStates, stateHints } from '../accounts/account-rows.ts';
import {
  knownState,
  requireCurrentDevices,
  resolveOwnState,
  resolveState,
} from '../accounts/device-states.ts';
import { atCurrentHome, isWrongHome } from '../accounts/home-relay.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isRefusal } from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { submitAfterMove } from './flush-outbox.ts';
import { addMessage, type MessageRow, messageRow, removeMessage } from './message-rows.ts';
import { type OutboxRow, outbox, type Purpose } from './outbox.ts';
import { submit } from './submit.ts';

/** Milliseconds for which a device state is used without a new read, unless a hint arrives. */
const stateMaxAge = 3_600_000;

/** A message to be sealed and sent. */
export interface OutgoingMessage {
  readonly to: string;
  /** The business object, with its `$type`. */
  readonly content: JsonObject;
  readonly authorization?: Authorization | undefined;
  readonly purpose: Purpose;
  /** For a self-delivery: whether this device gets a key box too. */
  readonly includeThisDevice?: boolean;
  readonly signal: AbortSignal;
  /** Runs in the transaction that puts the message into the outbox. */
  readonly inTransaction?: (tx: StoreWriter) => Promise<void>;
}

/**
 * Seals, stores and submits a message. Retries once with a new envelope, boxes and ID: after
 * `device_unknown` with fresh device states, after `clock_skew` with the relay's clock.
 *
 * @throws ClientError `no_recipient_device`, `invalid_input`
 * @throws RelayRefused if the relay refuses it
 * @throws RelayUnreachable with the message stored, to be submitted again
 */
export async function sendMessage(
  core: AccountCore,
  message: OutgoingMessage,
): Promise<MessageRow> {
  let replaces: MessageRow | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const recipients = await atCurrentHome(core, message.signal, () =>
      recipientsOf(core, message, { refresh: attempt > 1 }),
    );
    const row = await sealAndStore(core, { ...message, recipients, replaces });
    try {
      return await submit(core, row, message.signal);
    } catch (error) {
      if (isWrongHome(error)) {
        return await submitAfterMove(core, row, { refusal: error, signal: message.signal });
      }
      if (attempt > 1 || !isRefusal(error, 'device_unknown', 'clock_skew')) throw error;
      if (error.error === 'clock_skew') (await core.home()).relayClock.adopt();
      const { from, message_id } = row.params.envelope;
      replaces = await core.store.read((tx) => messageRow(tx, { from, message_id }));
    }
  }
}

/** Returns the target's currently valid devices, by a state that is recent enough. */
async function recipientsOf(
  core: AccountCore,
  { to, authorization, includeThisDevice = true, signal }: OutgoingMessage,
  { refresh }: { readonly refresh: boolean },
): Promise<DeviceCertificate[]> {
  if (refresh || to === core.account) {
    await refreshOwnState(core, { refresh, signal });
  }
  if (to === core.account) {
    const state = await ownState(core);
    const devices = requireCurrentDevices(core, state);
    if (includeThisDevice) return devices;
    const others = devices.filter(
      (item) => item.signing_public_key !== core.device.signingPublicKey,
    );
    if (others.length === 0) {
      throw new ClientError(
        'no_recipient_device',
        'the account has no other device: add one first',
      );
    }
    return others;
  }
  const known = refresh ? undefined : await recentState(core, to);
  const options = { ...(authorization !== undefined && { authorization }), signal };
  return requireCurrentDevices(core, known ?? (await resolveState(core, to, options)));
}

async function recentState(core: AccountCore, account: string) {
  return await core.store.read(async (tx) => {
    const record = await deviceStates.get(tx, account);
    if (record === undefined || (await stateHints.get(tx, account)) !== undefined) return undefined;
    const age = core.clock.milliseconds() - record.checkedAt;
    return age >= 0 && age < stateMaxAge ? record.state : undefined;
  });
}

async function refreshOwnState(
  core: AccountCore,
  { refresh, signal }: { readonly refresh: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const recent = refresh ? undefined : await recentState(core, core.account);
  if (recent !== undefined) return;
  await resolveOwnState(core, await core.home(), { account: core.account, signal });
}

async function ownState(core: AccountCore) {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined)
    throw new ClientError('not_set_up', 'the own device state is not known: synchronize first');
  return state;
}

/** Seals a message and stores it, before anything of it is sent. */
async function sealAndStore(
  core: AccountCore,
  message: OutgoingMessage & {
    readonly recipients: readonly DeviceCertificate[];
    readonly replaces: MessageRow | undefined;
  },
): Promise<OutboxRow> {
  const { to, content, authorization, purpose, recipients, replaces, inTransaction } = message;
  const home = await core.home();
  const senders = to === core.account ? [] : requireCurrentDevices(core, await ownState(core));
  const params: SendRequest = {
    ...sealOrInvalidInput(() =>
      sealMessage(core.network, {
        from: core.device,
        to,
        createdAt: home.relayClock.now(),
        content,
        recipients,
        senders,
        random: core.random,
      }),
    ),
    ...(authorization !== undefined && { authorization }),
  };
  const row: OutboxRow = { params, relayId: home.relayId, purpose, accepted: false };
  const { envelope } = params;
  await core.store.write(async (tx) => {
    if (replaces !== undefined) await removeMessage(tx, replaces);
    await outbox.put(tx, envelope.message_id, row);
    await addMessage(tx, {
      message_id: envelope.message_id,
      from: envelope.from,
      from_device_id: envelope.from_device_id,
      to,
      created_at: envelope.created_at,
      digest: sha256Text(core.network.primitives, canonicalBytes(envelope)),
      content,
      outcome: 'applied',
      status: 'sending',
    });
    await inTransaction?.(tx);
  });
  return row;
}

/** Seals; an error of the protocol becomes `invalid_input`. */
function sealOrInvalidInput<T>(seal: () => T): T {
  try {
    return seal();
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', cause.message, { cause });
  }
}

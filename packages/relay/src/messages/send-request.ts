import { ProtocolError, readSendRequest } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { Call } from '../dispatch/call.ts';
import type { DeviceSession } from '../sessions/session.ts';
import { boxTexts, type MessageParts, messageParts } from './message-parts.ts';

/** One call of `message.send` that passed every check that needs no storage. */
export interface CheckedSendRequest extends MessageParts {
  readonly session: DeviceSession;
  /** Time of the call, Unix seconds. */
  readonly now: number;
  /** Canonical JSON of each box, by device ID. */
  readonly senderBoxes: ReadonlyMap<string, string> | undefined;
}

/**
 * Checks parameters and sender of a call (04 section 12.1, steps 2 and 3) and makes each text that
 * is stored or compared, once.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `forbidden`
 */
export function checkCall(context: RelayContext, call: Call<'message.send'>): CheckedSendRequest {
  const { clock, network, limits } = context;
  const { params, session } = call;
  const { envelope } = params;
  const parts = messageParts(params, readSendRequest(network, params), limits);
  const senderBoxes = params.sender_boxes && boxTexts(params.sender_boxes, limits);
  // Before storage is read, so that no account reads the result of another account's message.
  if (envelope.from !== session.account || envelope.from_device_id !== session.deviceId) {
    throw new ProtocolError('forbidden', 'the envelope is not of the calling device');
  }
  return { ...parts, session, now: clock.now(), senderBoxes };
}

import {
  type DeliverRequest,
  type DeviceCertificate,
  readDeliverRequest,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { StoredMessage } from './append.ts';
import { type MessageParts, messageParts } from './message-parts.ts';
import type { MessageKey } from './store.ts';

/** A `message.deliver` that passed every check that needs no storage. */
export interface Receipt extends MessageParts {
  readonly key: MessageKey;
  readonly certificate: DeviceCertificate;
  readonly message: StoredMessage;
  /** Time of the request, Unix seconds. */
  readonly now: number;
}

/** Time of the acceptance, and what it changed. */
export interface Reception {
  /** Unix seconds. */
  readonly acceptedAt: number;
  readonly notices: readonly Notice[];
}

/**
 * Checks the parameters of `message.deliver`.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 */
export function checkReceipt(
  { clock, limits, network }: RelayContext,
  params: DeliverRequest,
): Receipt {
  const parts = messageParts(params, readDeliverRequest(network, params), limits);
  const { from: sender, from_device_id: deviceId, message_id: messageId } = parts.envelope;
  const certificate = params.signer_certificate;
  const text = canonicalJson(certificate);
  return {
    ...parts,
    ...{ key: { sender, messageId }, now: clock.now(), certificate },
    message: { envelope: parts.storedEnvelope, certificate: { id: digest(text), deviceId, text } },
  };
}

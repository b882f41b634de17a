/** The parameters of `message.send` and `message.deliver` (04 §11, §12, §13.1). */
import {
  type Authorization,
  Authorization as AuthorizationSchema,
  checkAuthorization,
  checkAuthorizationUse,
} from '../contacts/index.ts';
import { badRequest } from '../errors.ts';
import { checkDeviceCertificate, DeviceCertificate, type Network } from '../identity/index.ts';
import { checkNoNull, checkSchema, type Static, Type } from '../schema.ts';
import {
  checkEnvelopeCertificate,
  type EnvelopeTexts,
  MessageEnvelope,
  readEnvelope,
} from './envelope.ts';
import { checkKeyBoxRules, MessageKeyBoxes } from './key-box.ts';

/** Parameters of `message.send`. */
export const SendRequest = Type.Object({
  envelope: MessageEnvelope,
  recipient_boxes: MessageKeyBoxes,
  sender_boxes: Type.Optional(MessageKeyBoxes),
  authorization: Type.Optional(AuthorizationSchema),
});
export type SendRequest = Static<typeof SendRequest>;

/** Parameters of `message.deliver`, between relays. */
export const DeliverRequest = Type.Object({
  envelope: MessageEnvelope,
  recipient_boxes: MessageKeyBoxes,
  signer_certificate: DeviceCertificate,
  authorization: Type.Optional(AuthorizationSchema),
});
export type DeliverRequest = Static<typeof DeliverRequest>;

/** How a message reaches its target's account (04 §11). */
export type DeliveryKind = 'self' | 'granted' | 'invited' | 'public';

/**
 * Checks everything about the parameters of `message.send` that needs neither state nor clock:
 * envelope, boxes, the format of the authorization, what self-delivery must leave out.
 *
 * Accounts and period of the authorization are `checkDeliveryAuthorization`, which comes after the
 * idempotency lookup.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * checkSendRequest(network, value);
 * console.log(value.envelope.to);
 */
export function checkSendRequest(network: Network, value: unknown): asserts value is SendRequest {
  checkSchema(SendRequest, value);
  checkNoNull(value);
  readSendRequest(network, value);
}

/**
 * Checks everything about the parameters of `message.send` that their schema does not express, as
 * {@link checkSendRequest} does, and returns the envelope's texts, each made once.
 *
 * @param request one that matches its schema and has no `null`
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const { complete } = readSendRequest(network, { envelope, recipient_boxes: [keyBox] });
 */
export function readSendRequest(network: Network, request: SendRequest): EnvelopeTexts {
  const { authorization, envelope, sender_boxes: senderBoxes } = request;
  const texts = readEnvelope(network, envelope, 'envelope');
  checkKeyBoxRules(request.recipient_boxes, 'recipient_boxes');
  if (senderBoxes !== undefined) checkKeyBoxRules(senderBoxes, 'sender_boxes');
  if (authorization !== undefined) checkAuthorization(network, authorization);
  if (envelope.from !== envelope.to) return texts;
  if (senderBoxes !== undefined) throw badRequest('sender_boxes', 'self-delivery has none');
  if (authorization !== undefined) throw badRequest('authorization', 'self-delivery has none');
  return texts;
}

/**
 * Checks everything about the parameters of `message.deliver` that needs neither state nor clock,
 * and that the certificate is the sender's. Its signatures and the envelope's are not verified.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * checkDeliverRequest(network, value);
 * console.log(value.envelope.to);
 */
export function checkDeliverRequest(
  network: Network,
  value: unknown,
): asserts value is DeliverRequest {
  checkSchema(DeliverRequest, value);
  checkNoNull(value);
  readDeliverRequest(network, value);
}

/**
 * Checks everything about the parameters of `message.deliver` that their schema does not express,
 * as {@link checkDeliverRequest} does, and returns the envelope's texts, each made once.
 *
 * @param request one that matches its schema and has no `null`
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const request = { envelope, recipient_boxes: [keyBox], signer_certificate: certificate };
 * const { complete } = readDeliverRequest(network, request);
 */
export function readDeliverRequest(network: Network, request: DeliverRequest): EnvelopeTexts {
  const { authorization, envelope, signer_certificate: certificate } = request;
  const texts = readEnvelope(network, envelope, 'envelope');
  checkKeyBoxRules(request.recipient_boxes, 'recipient_boxes');
  checkDeviceCertificate(network, certificate, 'signer_certificate');
  checkEnvelopeCertificate(network, envelope, certificate);
  if (authorization !== undefined) checkAuthorization(network, authorization);
  if (envelope.from === envelope.to) {
    throw badRequest('envelope.to', 'self-delivery never leaves its relay');
  }
  return texts;
}

/**
 * Returns the kind of a delivery, from its well-formed parameters.
 *
 * @example
 * deliveryKind(network, { envelope, authorization: grant }); // 'granted'
 */
export function deliveryKind(
  network: Network,
  request: Pick<SendRequest, 'envelope' | 'authorization'>,
): DeliveryKind {
  const { envelope, authorization } = request;
  if (envelope.from === envelope.to) return 'self';
  if (authorization === undefined) return 'public';
  return authorization.$type === network.type('contact.grant') ? 'granted' : 'invited';
}

/**
 * Checks that the authorization of a delivery, if any, is the recipient's, for this sender, and
 * unexpired: everything a relay can check without the recipient's device state.
 *
 * @throws ProtocolError `forbidden`
 * @example
 * checkDeliveryAuthorization(network, { envelope, authorization: grant }, now);
 */
export function checkDeliveryAuthorization(
  network: Network,
  request: { readonly envelope: MessageEnvelope; readonly authorization?: Authorization },
  now: number,
): void {
  const { envelope, authorization } = request;
  if (authorization === undefined) return;
  const use = { target: envelope.to, requester: envelope.from, now };
  checkAuthorizationUse(network, authorization, use);
}

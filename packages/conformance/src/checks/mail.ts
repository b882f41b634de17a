/** What the checks of messages play with: sealed messages and their parts. */

import { nodeRandom } from '@posthouse/primitives-node';
import {
  type DeviceCertificate,
  encodeBase64url,
  envelopeSigningInput,
  type JsonObject,
  type MessageEnvelope,
  type SealMessageInput,
  sealMessage,
} from '@posthouse/protocol';
import { type Device, unixSeconds } from '../actors.ts';
import { grantFor, signerOf } from './device-query.ts';

export interface MailOptions extends Partial<Pick<SealMessageInput, 'createdAt' | 'messageId'>> {
  readonly to: string;
  readonly recipients: readonly DeviceCertificate[];
  readonly senders?: readonly DeviceCertificate[];
  readonly text?: string;
}

/** A sealed direct message by a device. */
export function mail(from: Device, options: MailOptions) {
  const { network } = from.account;
  return sealMessage(network, {
    from: signerOf(from),
    to: options.to,
    createdAt: options.createdAt ?? unixSeconds(),
    ...(options.messageId === undefined ? {} : { messageId: options.messageId }),
    content: {
      $type: network.type('message.direct'),
      body: { content_type: 'text/plain', text: options.text ?? 'hi' },
    },
    recipients: options.recipients,
    ...(options.senders === undefined ? {} : { senders: options.senders }),
    random: nodeRandom,
  });
}

/** The complete parameters of a granted message from one device to others of another account. */
export function grantedMail(
  from: Device,
  to: readonly Device[],
  options: Partial<MailOptions> = {},
): JsonObject {
  const [first] = to as [Device];
  const message = mail(from, {
    to: first.account.id,
    recipients: to.map(({ certificate }) => certificate),
    ...options,
  });
  return { ...message, authorization: grantFor(first, from.account.id) };
}

/** The parameters with an envelope changed and signed again. */
export function resignedMail(from: Device, params: JsonObject, changes: JsonObject): JsonObject {
  const envelope = { ...(params.envelope as MessageEnvelope), ...changes } as MessageEnvelope;
  const signature = from.signer.sign(envelopeSigningInput(from.account.network, envelope));
  return { ...params, envelope: { ...envelope, device_signature: encodeBase64url(signature) } };
}

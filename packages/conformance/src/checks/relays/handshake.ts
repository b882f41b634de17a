/** The handshake between relays: its payload and the identity that it proves (07 §B3, §B4). */
import { encodeVarint, utf8, verifyDescriptor } from '@posthouse/protocol';
import { formatPeerId } from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { assertConforms } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { type MakePayload, payloadWith } from '../../seat/raw-handshake.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import { relayChecksOf } from './common.ts';

const handshake = relayChecksOf('peer.handshake');

/** Fields of the payload by number, and wire type 2: a length, then so many bytes. */
const field = { identityKey: 1, identitySignature: 2, extensions: 4, descriptor: 1025 } as const;

function bytesField(number: number, bytes: Uint8Array): Uint8Array {
  const tag = encodeVarint(BigInt(number * 8 + 2));
  return Buffer.concat([tag, encodeVarint(BigInt(bytes.length)), bytes]);
}

interface PayloadParts {
  readonly key: Uint8Array;
  readonly signature: Uint8Array;
  readonly descriptor: string;
}

type BuildPayload = (parts: PayloadParts) => readonly Uint8Array[];

const extensionOf = (descriptor: string | Uint8Array) =>
  bytesField(
    field.extensions,
    bytesField(field.descriptor, typeof descriptor === 'string' ? utf8(descriptor) : descriptor),
  );

const keyField = ({ key }: PayloadParts) => bytesField(field.identityKey, key);
const signatureField = ({ signature }: PayloadParts) =>
  bytesField(field.identitySignature, signature);
const descriptorField = ({ descriptor }: PayloadParts) => extensionOf(descriptor);

/** Makes the payload of a seat's handshake. */
function payloadOf(seat: RelaySeat, build: BuildPayload): MakePayload {
  return ({ identity, signature }) =>
    Buffer.concat(build({ key: identity.publicKey, signature, descriptor: seat.served }));
}

/** Valid payloads in unusual forms. */
const valid: Readonly<Record<string, BuildPayload>> = {
  'other-order': (parts) => [descriptorField(parts), signatureField(parts), keyField(parts)],
  'unknown-fields': (parts) => [
    bytesField(98, utf8('unknown')),
    keyField(parts),
    signatureField(parts),
    bytesField(99, utf8('unknown')),
    bytesField(
      field.extensions,
      Buffer.concat([
        bytesField(1_024, utf8('unknown')),
        bytesField(field.descriptor, utf8(parts.descriptor)),
        bytesField(1_026, utf8('unknown')),
      ]),
    ),
  ],
  'last-value-wins': (parts) => [
    bytesField(field.identityKey, utf8('first')),
    bytesField(field.identitySignature, new Uint8Array(64)),
    extensionOf('{}'),
    keyField(parts),
    signatureField(parts),
    descriptorField(parts),
  ],
  'merged-extensions': (parts) => [
    keyField(parts),
    signatureField(parts),
    descriptorField(parts),
    bytesField(field.extensions, bytesField(1_026, utf8('a later part'))),
  ],
};

for (const [word, build] of Object.entries(valid)) {
  handshake.check(
    `valid-${word}`,
    { source: '07 §B3', title: `accepts a payload with ${word} by the rules of protobuf` },
    async (context) => {
      const seat = await context.seat();
      await seat.expectAdmitted(payloadOf(seat, build), `a payload with ${word}`);
    },
  );
}

handshake.check(
  'largest-message',
  { source: '07 §B3', title: 'accepts a handshake message of exactly 65,535 bytes' },
  async (context) => {
    const seat = await context.seat();
    const build: BuildPayload = (parts) => {
      const fields = [keyField(parts), signatureField(parts), descriptorField(parts)];
      // The static key of 32 bytes and the payload, each with a tag of 16 bytes.
      const used = Buffer.concat(fields).length + 32 + 16 + 16;
      const padding = 65_535 - used - bytesField(99, new Uint8Array(60_000)).length + 60_000;
      return [...fields, bytesField(99, new Uint8Array(padding))];
    };
    await seat.expectAdmitted(payloadOf(seat, build), 'the largest message');
  },
);

/** The character for what is no UTF-8, and a byte for which it stands. */
const replacement = '\ufffd';
const invalidByte = new Uint8Array([0xff]);

/** Payloads with one fault each. */
const faults: Readonly<Record<string, BuildPayload>> = {
  'no-identity-key': (parts) => [signatureField(parts), descriptorField(parts)],
  'no-identity-signature': (parts) => [keyField(parts), descriptorField(parts)],
  'no-extensions': (parts) => [keyField(parts), signatureField(parts)],
  'no-descriptor': (parts) => [
    keyField(parts),
    signatureField(parts),
    bytesField(field.extensions, bytesField(1_024, utf8('unknown'))),
  ],
  'signature-altered': (parts) => {
    const signature = Buffer.from(parts.signature);
    signature[9] = (signature[9] as number) ^ 1;
    return [
      keyField(parts),
      bytesField(field.identitySignature, signature),
      descriptorField(parts),
    ];
  },
  'another-identity-key': (parts) => {
    const key = Buffer.from(parts.key);
    key[9] = (key[9] as number) ^ 1;
    return [bytesField(field.identityKey, key), signatureField(parts), descriptorField(parts)];
  },
  'key-of-another-type': (parts) => [
    encodeVarint(BigInt(field.identityKey * 8)),
    encodeVarint(1n),
    signatureField(parts),
    descriptorField(parts),
  ],
  truncated: (parts) => [
    keyField(parts),
    signatureField(parts),
    descriptorField(parts),
    bytesField(99, utf8('cut off')).subarray(0, 4),
  ],
  'descriptor-no-utf8': (parts) => {
    // Read with replacements, this is the text that the relay has signed.
    const bytes = Buffer.from(parts.descriptor);
    const at = bytes.indexOf(replacement);
    const invalid = Buffer.concat([bytes.subarray(0, at), invalidByte, bytes.subarray(at + 3)]);
    return [keyField(parts), signatureField(parts), extensionOf(invalid)];
  },
  'descriptor-no-json': (parts) => [keyField(parts), signatureField(parts), extensionOf('{')],
  'descriptor-repeats-a-member': (parts) => [
    keyField(parts),
    signatureField(parts),
    extensionOf(`{"$type":"x",${parts.descriptor.slice(1)}`),
  ],
};

for (const [word, build] of Object.entries(faults)) {
  handshake.check(
    `refused-${word}`,
    { source: '07 §B3', title: `closes the connection after a payload with ${word}` },
    async (context) => {
      const seat = await context.seat();
      seat.served = JSON.stringify(await seat.descriptor({ note: replacement }));
      await seat.expectAdmitted();
      const { isAdmitted } = await seat.handshake(payloadOf(seat, build));
      assertConforms(!isAdmitted, `after a payload with ${word} no request is answered`);
    },
  );
}

handshake.check(
  'own-payload',
  { source: '07 §B3, §A9', title: 'sends its complete descriptor, which binds its Peer ID' },
  async (context) => {
    const { network } = context;
    const seat = await context.seat();
    // Verifies `identity_sig` and the Peer ID of the address.
    await seat.connect();
    const { payload } = await seat.handshake(payloadWith(seat.served));
    const descriptor: unknown = parseJson(payload.descriptor);
    verifyDescriptor(network, descriptor, { entry: context.target.entry, now: unixSeconds() });
    const { peerId } = seat.targetAddress;
    assertConforms(
      descriptor.endpoints.some((item) => item.endsWith(`/p2p/${formatPeerId(peerId)}`)),
      'the descriptor of the handshake binds the Peer ID of the handshake',
    );
  },
);

export const handshakeChecks = handshake.list;

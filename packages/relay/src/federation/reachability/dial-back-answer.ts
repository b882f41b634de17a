/** What a relay answers when another one asks to be dialled: JSON in one frame (07 §B2). */
import { checkSchema, type Static, Type, utf8 } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';

/** The request is a frame without bytes: the addresses are those of the asker's descriptor. */
export const dialBackRequest = new Uint8Array(0);

/** Bytes of an answer that are read; one of eight addresses has less. */
const maxBytes = 16_384;

/**
 * - `reached`: connected, and the handshake proved the asker's Peer ID;
 * - `refused`: no connection, or a handshake that failed; also an address that is not dialled;
 * - `timed_out`: no end of either in time;
 * - `wrong_peer`: the handshake proved another Peer ID.
 */
const DialOutcome = Type.Union([
  Type.Literal('reached'),
  Type.Literal('refused'),
  Type.Literal('timed_out'),
  Type.Literal('wrong_peer'),
]);
export type DialOutcome = Static<typeof DialOutcome>;

/** An address of the asker's descriptor, and what happened there. */
const DialledAddress = Type.Object({
  address: Type.String({ maxLength: 512 }),
  outcome: DialOutcome,
});
export type DialledAddress = Static<typeof DialledAddress>;

const Dialled = Type.Object({
  addresses: Type.Array(DialledAddress, { maxItems: 8 }),
  /** Whether the answering relay names the asker to other relays (07 §B7, FIND_NODE). */
  listed: Type.Boolean(),
});
const Busy = Type.Object({
  /** Seconds after which the asker may ask again. */
  retry_after: Type.Integer({ minimum: 1, maximum: 86_400 }),
});

export type DialBackAnswer = Static<typeof Dialled> | Static<typeof Busy>;

export function encodeDialBackAnswer(answer: DialBackAnswer): Uint8Array {
  return utf8(JSON.stringify(answer));
}

/** @throws Error if it is too long, no JSON, or has another shape */
export function decodeDialBackAnswer(frame: Uint8Array): DialBackAnswer {
  if (frame.length > maxBytes) throw new Error(`the answer has over ${maxBytes} bytes`);
  const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(frame));
  const isBusy = typeof value === 'object' && value !== null && Object.hasOwn(value, 'retry_after');
  if (isBusy) {
    checkSchema(Busy, value);
    return value;
  }
  checkSchema(Dialled, value);
  return value;
}

/**
 * The parsers, each with what must hold for any bytes: errors are of one class, what is accepted is
 * written back as it was read, and bytes mean the same in whatever pieces they arrive.
 */
import assert from 'node:assert/strict';
import { defaultPeerLimits, PeerError } from '@posthouse/peer';
import {
  ChannelId,
  checkAccountId,
  checkSchema,
  decodeBase64url,
  decodeQuery,
  encodeQuery,
  GroupId,
  GroupInviteId,
  type MethodDefinition,
  methods,
  ProtocolError,
  parseMediaType,
} from '@posthouse/protocol';
import {
  checkKadRequest,
  decodeHandshakePayload,
  decodeKadMessage,
  decodeMultiaddr,
  decodePeerKey,
  encodeHandshakePayload,
  encodeKadMessage,
  encodeMultiaddr,
  encodePeerKey,
  FrameError,
  FrameReader,
  formatMultiaddr,
  formatPeerId,
  kadCandidates,
  parseMultiaddr,
  parsePeerId,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { Proposal, Selection } from '../../../../peer/src/multistream.ts';
import { NoiseHandshake } from '../../../../peer/src/noise/handshake.ts';
import { noiseKeysOf } from '../../../../peer/src/noise/keys.ts';
import { FrameParser } from '../../../../peer/src/yamux/frame.ts';
import { YamuxSession } from '../../../../peer/src/yamux/session.ts';
import { readRelayEnvelope } from '../../../src/dispatch/envelope.ts';
import { checkParams } from '../../../src/dispatch/params.ts';
import { network } from '../../support/modules.ts';
import { compareText } from '../parse-texts.ts';

/** Throws if a parser does with these bytes what it must not. */
export type Target = (bytes: Buffer) => void;

type ErrorClass = new (...args: never[]) => Error;

/** Returns the result of a parser, or `undefined` if it refuses with an error of its class. */
function attempt<T>(allowed: ErrorClass, parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof allowed) return undefined;
    throw error;
  }
}

/** The bytes in two pieces, cut where the first byte says, and in single bytes. */
function cuts(bytes: Buffer): Buffer[][] {
  const at = bytes.length === 0 ? 0 : (bytes[0] as number) % bytes.length;
  return [
    [bytes.subarray(0, at), bytes.subarray(at)],
    Array.from({ length: Math.min(bytes.length, 400) }, (_, index) =>
      index === 399 ? bytes.subarray(399) : bytes.subarray(index, index + 1),
    ),
  ];
}

/** Checks that a reader of pieces says the same of the whole as of the pieces. */
function sameInPieces(bytes: Buffer, read: (pieces: readonly Buffer[]) => unknown): void {
  const whole = read([bytes]);
  for (const pieces of cuts(bytes)) assert.deepEqual(read(pieces), whole);
}

const allMethods = Object.values<MethodDefinition>(methods);
const method = (byte = 0) => allMethods[byte % allMethods.length] as MethodDefinition;

function base64url(bytes: Buffer): void {
  const text = bytes.toString('latin1');
  const decoded = decodeBase64url(text);
  const again = Buffer.from(text, 'base64url');
  const isRight = /^[\w-]*$/.test(text) && again.toString('base64url') === text;
  assert.equal(decoded !== undefined, isRight);
  if (decoded !== undefined) assert.deepEqual(Buffer.from(decoded), again);
}

function ids(bytes: Buffer): void {
  const text = bytes.toString('utf8');
  const account = attempt(ProtocolError, () => {
    checkAccountId(network, text);
    return text;
  });
  if (account !== undefined) assert.match(account, /^neo:860833102:N[1-9A-HJ-NP-Za-km-z]{33}$/);
  for (const schema of [ChannelId, GroupId, GroupInviteId]) {
    const isRight = attempt(ProtocolError, () => {
      checkSchema(schema, text);
      return true;
    });
    const bytesOfId = decodeBase64url(text.slice(text.indexOf('_') + 1));
    if (isRight) assert.ok([16, 32].includes(bytesOfId?.length ?? 0));
  }
  const peer = parsePeerId(text);
  if (peer !== undefined) assert.deepEqual(parsePeerId(formatPeerId(peer)), peer);
}

function query(bytes: Buffer): void {
  const definition = method(bytes[0]);
  const raw = bytes.subarray(1).toString('latin1');
  const params = attempt(ProtocolError, () => decodeQuery(definition, raw));
  if (params === undefined) return;
  assert.deepEqual(decodeQuery(definition, encodeQuery(definition, params)), params);
}

function params(bytes: Buffer): void {
  let value: ReturnType<typeof parseJson>;
  try {
    value = parseJson(bytes.subarray(1).toString('utf8'));
  } catch {
    return;
  }
  attempt(ProtocolError, () => checkParams(method(bytes[0]), value));
}

function mediaType(bytes: Buffer): void {
  const type = parseMediaType(bytes.toString('latin1'));
  if (type !== undefined) assert.match(type.essence, /^[^\s/;]+\/[^\s/;]+$/);
}

function relayRpc(bytes: Buffer): void {
  const text = bytes.toString('utf8');
  readRelayResponse(text, 1);
  const envelope = readRelayEnvelope(text);
  if (envelope.kind !== 'refused') return;
  const answer = JSON.parse(envelope.answer) as { readonly error: { readonly code: number } };
  assert.ok([-32700, -32600, -32602].includes(answer.error.code));
}

function frames(bytes: Buffer): void {
  sameInPieces(bytes, (pieces) => {
    const reader = new FrameReader(300);
    const found: Buffer[] = [];
    try {
      for (const piece of pieces)
        for (const one of reader.push(piece)) found.push(Buffer.from(one));
      reader.end();
      return { found };
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return { found, fault: error.fault };
    }
  });
}

function kademlia(bytes: Buffer): void {
  const bounds = { peers: 20, addresses: 8 };
  const message = attempt(ProtocolError, () => decodeKadMessage(new Uint8Array(bytes), bounds));
  if (message === undefined) return;
  attempt(ProtocolError, () => checkKadRequest(message));
  kadCandidates(message);
  assert.deepEqual(decodeKadMessage(encodeKadMessage(message), bounds), message);
}

function handshakePayload(bytes: Buffer): void {
  const payload = attempt(ProtocolError, () => decodeHandshakePayload(new Uint8Array(bytes)));
  if (payload === undefined) return;
  assert.deepEqual(decodeHandshakePayload(encodeHandshakePayload(payload)), payload);
}

function peerKey(bytes: Buffer): void {
  const key = attempt(ProtocolError, () => decodePeerKey(new Uint8Array(bytes)));
  if (key !== undefined) assert.deepEqual(decodePeerKey(encodePeerKey(key)), key);
}

function multiaddr(bytes: Buffer): void {
  const address = decodeMultiaddr(new Uint8Array(bytes));
  if (address !== undefined) {
    assert.deepEqual(decodeMultiaddr(encodeMultiaddr(address)), address);
    assert.deepEqual(parseMultiaddr(formatMultiaddr(address)), address);
  }
  const read = parseMultiaddr(bytes.toString('utf8'));
  if (read !== undefined) assert.deepEqual(parseMultiaddr(formatMultiaddr(read)), read);
}

function yamuxFrames(bytes: Buffer): void {
  sameInPieces(bytes, (pieces) => {
    const found: unknown[] = [];
    let payload: Buffer[] = [];
    const parser = new FrameParser({
      header: (header) => void found.push(Buffer.concat(payload.splice(0)).toString('hex'), header),
      payload: (piece) => void payload.push(Buffer.from(piece)),
    });
    const isFine = attempt(PeerError, () => {
      for (const piece of pieces) parser.receive(piece);
      return true;
    });
    found.push(Buffer.concat(payload).toString('hex'));
    payload = [];
    return { found, isFine };
  });
}

function yamuxSession(bytes: Buffer): void {
  let written = 0;
  const session = new YamuxSession({
    client: false,
    controlFrames: 64,
    output: {
      isBlocked: false,
      write: (plain) => {
        written += plain.length;
      },
    },
    accept: (stream) => {
      stream.events = { data: (piece) => stream.credit(piece.length), end() {}, closed() {} };
      return session.streams.size <= 4;
    },
    goneAway() {},
    idle() {},
    schedule: (flush) => flush(),
  });
  attempt(PeerError, () => session.receive(bytes));
  // Every frame is answered by a few at the most.
  assert.ok(written <= 100 + bytes.length * 4, `${written} bytes for ${bytes.length}`);
  assert.ok(session.streams.size <= 5);
}

function multistream(bytes: Buffer): void {
  sameInPieces(bytes, (pieces) => {
    const selection = new Selection((name) => name === '/noise', defaultPeerLimits);
    const replies: Buffer[] = [];
    let agreed: string | undefined;
    const isFine = attempt(PeerError, () => {
      for (const piece of pieces) {
        const step = selection.receive(piece);
        replies.push(Buffer.from(step.reply));
        agreed = step.agreed?.protocol;
        if (agreed !== undefined) return true;
      }
      return true;
    });
    // Before a fault, pieces may be answered that a whole is not.
    return { isFine, agreed, ...(isFine && { reply: Buffer.concat(replies).toString('hex') }) };
  });
  const proposal = new Proposal('/noise', defaultPeerLimits);
  attempt(PeerError, () => proposal.receive(bytes));
}

const staticKeys = noiseKeysOf(new Uint8Array(32).fill(7));

function noise(bytes: Buffer): void {
  for (const role of ['initiator', 'responder'] as const) {
    const side = new NoiseHandshake({ role, staticKeys });
    if (role === 'initiator') side.write(new Uint8Array());
    attempt(PeerError, () => side.read(bytes));
  }
}

export const targets: Readonly<Record<string, Target>> = {
  json: (bytes) => void compareText(bytes),
  ...{ base64url, ids, query, params, mediaType, relayRpc, frames, kademlia },
  ...{ handshakePayload, peerKey, multiaddr, yamuxFrames, yamuxSession, multistream, noise },
};

/**
 * multistream-select 1.0: agrees on a protocol at the start of a connection or stream. Pure: bytes
 * in, bytes out. A line is a varint length, the text, and a line feed that the length counts.
 */
import { decodeVarint, encodeVarint } from '@posthouse/protocol';
import { PeerError } from './errors.ts';

const header = '/multistream/1.0.0';
const refusal = 'na';

/** Bounds of one negotiation. */
export interface NegotiationLimits {
  readonly negotiationBytes: number;
  readonly negotiationProposals: number;
}

/** Encodes lines of multistream-select. */
export function encodeLines(...lines: readonly string[]): Uint8Array {
  const parts = lines.flatMap((line) => {
    const text = Buffer.from(`${line}\n`);
    return [encodeVarint(BigInt(text.length)), text];
  });
  return Buffer.concat(parts);
}

/** Lines out of bytes that come in any pieces; holds at most one line. */
class LineReader {
  readonly #maximum: number;
  #bytes: Uint8Array = new Uint8Array(0);

  /** @param maximum bytes of one line */
  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  push(bytes: Uint8Array): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
  }

  /** Returns the next line without its line feed; `undefined` if more bytes are needed. */
  next(): string | undefined {
    const prefix = decodeVarint(this.#bytes);
    if (prefix === 'incomplete') return this.#wait();
    if (prefix === 'invalid' || prefix.value > BigInt(this.#maximum)) {
      throw new PeerError('protocol', 'multistream-select: invalid length of a line');
    }
    const end = prefix.length + Number(prefix.value);
    if (this.#bytes.length < end) return this.#wait();
    const line = Buffer.from(this.#bytes.subarray(prefix.length, end)).toString('latin1');
    if (!line.endsWith('\n')) throw new PeerError('protocol', 'multistream-select: no line feed');
    this.#bytes = this.#bytes.subarray(end);
    return line.slice(0, -1);
  }

  /** Part of a line must not keep the large buffer alive that it lies in. */
  #wait(): undefined {
    this.#bytes = new Uint8Array(this.#bytes);
  }

  /** Returns the bytes after the last line. */
  rest(): Uint8Array {
    return this.#bytes;
  }
}

/** Proposes one protocol, as the side that opens a connection or stream. */
export class Proposal {
  /** What to send first; data may follow without waiting for the reply. */
  readonly request: Uint8Array;
  readonly #protocol: string;
  readonly #lines: LineReader;
  #greeted = false;

  constructor(protocol: string, limits: NegotiationLimits) {
    this.#protocol = protocol;
    this.#lines = new LineReader(limits.negotiationBytes);
    this.request = encodeLines(header, protocol);
  }

  /**
   * Reads bytes of the reply.
   *
   * @returns the bytes after the reply once the peer agreed; `undefined` while more are needed
   * @throws PeerError `not_supported` if the peer refuses, `protocol` for anything else
   */
  receive(bytes: Uint8Array): Uint8Array | undefined {
    this.#lines.push(bytes);
    for (let line = this.#lines.next(); line !== undefined; line = this.#lines.next()) {
      if (!this.#greeted) {
        if (line !== header) throw new PeerError('protocol', 'multistream-select: no header');
        this.#greeted = true;
      } else if (line === this.#protocol) {
        return this.#lines.rest();
      } else if (line === refusal) {
        throw new PeerError('not_supported', `the peer does not support ${this.#protocol}`);
      } else {
        throw new PeerError('protocol', 'multistream-select: reply to another proposal');
      }
    }
    return undefined;
  }
}

/** What a {@link Selection} made of some bytes. */
export interface SelectionStep {
  /** To be sent; may be empty. */
  readonly reply: Uint8Array;
  /** The agreed protocol and the bytes after its proposal. */
  readonly agreed?: { readonly protocol: string; readonly rest: Uint8Array };
}

/** Selects one of the proposed protocols, as the side that accepts a connection or stream. */
export class Selection {
  readonly #supports: (protocol: string) => boolean;
  readonly #lines: LineReader;
  readonly #limits: NegotiationLimits;
  #greeted = false;
  #proposals = 0;

  constructor(supports: (protocol: string) => boolean, limits: NegotiationLimits) {
    this.#supports = supports;
    this.#limits = limits;
    this.#lines = new LineReader(limits.negotiationBytes);
  }

  /** Reads bytes of the peer. @throws PeerError `protocol` for invalid lines or too many proposals */
  receive(bytes: Uint8Array): SelectionStep {
    this.#lines.push(bytes);
    const reply: string[] = [];
    for (let line = this.#lines.next(); line !== undefined; line = this.#lines.next()) {
      if (!this.#greeted) {
        if (line !== header) throw new PeerError('protocol', 'multistream-select: no header');
        this.#greeted = true;
        reply.push(header);
        continue;
      }
      this.#proposals += 1;
      if (this.#supports(line)) {
        const agreed = { protocol: line, rest: this.#lines.rest() };
        return { reply: encodeLines(...reply, line), agreed };
      }
      if (this.#proposals >= this.#limits.negotiationProposals) {
        throw new PeerError('protocol', 'multistream-select: too many proposals');
      }
      reply.push(refusal);
    }
    return { reply: encodeLines(...reply) };
  }
}

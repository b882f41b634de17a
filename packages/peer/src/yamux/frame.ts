/** Frames of Yamux: 12 bytes of header, and the payload of data frames. All numbers big-endian. */
import { PeerError } from '../errors.ts';

export const headerBytes = 12;
/** Bytes that a stream may receive without new credit, from its start; the window never grows. */
export const windowBytes = 262_144;

export const frameType = { data: 0, windowUpdate: 1, ping: 2, goAway: 3 } as const;
export const frameFlag = { syn: 1, ack: 2, fin: 4, rst: 8 } as const;
/** Reasons of a GOAWAY frame. */
export const goAwayCode = { normal: 0, protocolError: 1, internalError: 2 } as const;

export interface FrameHeader {
  readonly type: number;
  /** Bits of {@link frameFlag}. */
  readonly flags: number;
  /** 0 for the session itself. */
  readonly streamId: number;
  /** Bytes of the payload; credit, a ping's value, or a reason for the other types. */
  readonly length: number;
}

/** Encodes a header: a whole frame, but for data frames. */
export function encodeHeader(header: FrameHeader): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes);
  bytes.writeUInt16BE(header.type, 0);
  bytes.writeUInt16BE(header.flags, 2);
  bytes.writeUInt32BE(header.streamId, 4);
  bytes.writeUInt32BE(header.length, 8);
  return bytes;
}

/** Receives what a {@link FrameParser} finds. */
export interface FrameSink {
  /** A header; for data frames before any payload, so that a length can be refused unread. */
  header(header: FrameHeader): void;
  /** Payload of the last data frame, in pieces that are not empty. */
  payload(piece: Uint8Array): void;
}

/** Frames out of bytes that come in any pieces; holds at most a part of one header. */
export class FrameParser {
  readonly #sink: FrameSink;
  readonly #partial = Buffer.alloc(headerBytes);
  #partialBytes = 0;
  #payloadLeft = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /**
   * @param most headers that are read
   * @returns how many bytes were read; fewer than all only before a header
   * @throws PeerError `protocol` for another version or an unknown type
   */
  receive(bytes: Buffer, most = Number.POSITIVE_INFINITY): number {
    let offset = 0;
    let headers = 0;
    while (offset < bytes.length && (this.#payloadLeft > 0 || headers < most)) {
      if (this.#payloadLeft > 0) {
        const end = Math.min(bytes.length, offset + this.#payloadLeft);
        this.#payloadLeft -= end - offset;
        this.#sink.payload(bytes.subarray(offset, end));
        offset = end;
      } else if (this.#partialBytes === 0 && bytes.length - offset >= headerBytes) {
        this.#readHeader(bytes, offset);
        offset += headerBytes;
        headers += 1;
      } else {
        const end = Math.min(bytes.length, offset + headerBytes - this.#partialBytes);
        this.#partialBytes += bytes.copy(this.#partial, this.#partialBytes, offset, end);
        offset = end;
        if (this.#partialBytes < headerBytes) break;
        this.#partialBytes = 0;
        this.#readHeader(this.#partial, 0);
        headers += 1;
      }
    }
    return offset;
  }

  #readHeader(bytes: Buffer, offset: number): void {
    const versionAndType = bytes.readUInt16BE(offset);
    if (versionAndType > frameType.goAway) {
      throw new PeerError('protocol', 'yamux: unknown version or type of frame');
    }
    const header = {
      type: versionAndType,
      flags: bytes.readUInt16BE(offset + 2),
      streamId: bytes.readUInt32BE(offset + 4),
      length: bytes.readUInt32BE(offset + 8),
    };
    if (header.type === frameType.data) this.#payloadLeft = header.length;
    this.#sink.header(header);
  }
}

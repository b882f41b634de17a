import { YamuxSession } from '../../src/yamux/session.ts';
import type { StreamEnd, YamuxStream } from '../../src/yamux/stream.ts';

/** One end of a stream with all that its owner was told. */
export class StreamLog {
  readonly stream: YamuxStream;
  received = 0;
  /** Bytes were received in the order they were sent. */
  inOrder = true;
  uncredited = 0;
  ended = false;
  closed: StreamEnd | undefined;

  constructor(stream: YamuxStream) {
    this.stream = stream;
    stream.events = {
      data: (piece) => {
        for (const byte of piece) {
          if (byte !== this.received % 251) this.inOrder = false;
          this.received += 1;
        }
        this.uncredited += piece.length;
      },
      end: () => {
        this.ended = true;
      },
      closed: (how) => {
        this.closed = how;
      },
    };
  }

  /** Reads all there is. */
  read(): void {
    this.stream.credit(this.uncredited);
    this.uncredited = 0;
  }
}

/** One session whose bytes are collected instead of sent. */
export class SessionEnd {
  readonly session: YamuxSession;
  readonly accepted: StreamLog[] = [];
  readonly #written: Buffer[] = [];
  goneAway: number | undefined;
  refuse = false;

  constructor(client: boolean, options: { firstStreamId?: number; controlFrames?: number } = {}) {
    this.session = new YamuxSession({
      client,
      controlFrames: 1_024,
      output: {
        isBlocked: false,
        write: (plaintext) => void this.#written.push(Buffer.from(plaintext)),
      },
      accept: (stream) => {
        if (this.refuse) return false;
        this.accepted.push(new StreamLog(stream));
        return true;
      },
      goneAway: (code) => {
        this.goneAway = code;
      },
      idle: () => {},
      // Tests flush themselves.
      schedule: () => {},
      ...options,
    });
  }

  /** Takes what was written. */
  take(): Buffer {
    this.session.flush();
    return Buffer.concat(this.#written.splice(0));
  }
}

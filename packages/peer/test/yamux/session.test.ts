import { describe, expect, test } from 'vitest';
import { encodeHeader, frameFlag, frameType, windowBytes } from '../../src/yamux/frame.ts';
import { hex } from '../support/bytes.ts';
import { SessionEnd, StreamLog } from '../support/yamux-pair.ts';

const { syn, ack, fin, rst } = frameFlag;
const { data, windowUpdate, ping, goAway } = frameType;

/** A frame; data frames get as many bytes of payload as their length says, or as given. */
function frame(
  type: number,
  flags: number,
  streamId: number,
  length = 0,
  payload = length,
): Buffer {
  const header = encodeHeader({ type, flags, streamId, length });
  return type === data ? Buffer.concat([header, counted(payload)]) : header;
}

/** Bytes that {@link StreamLog} finds in order. */
const counted = (length: number) => Buffer.from(Uint8Array.from({ length }, (_, i) => i % 251));

/** The headers in written bytes as `type flags stream length`. */
function headersOf(bytes: Buffer): string[] {
  const headers: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += 12) {
    const [type, flags] = [bytes.readUInt16BE(offset), bytes.readUInt16BE(offset + 2)];
    const [id, length] = [bytes.readUInt32BE(offset + 4), bytes.readUInt32BE(offset + 8)];
    headers.push(`${['data', 'window', 'ping', 'goaway'][type]} ${flags} ${id} ${length}`);
    if (type === data) offset += length;
  }
  return headers;
}

describe('frames that are sent', () => {
  test('07 §B2: SYN travels with the data, FIN in a frame of its own', () => {
    const end = new SessionEnd(true);
    const { stream } = new StreamLog(end.session.open());
    stream.send(counted(5));
    stream.finish();
    expect(headersOf(end.take())).toEqual([`data ${syn} 1 5`, `window ${fin} 1 0`]);
  });

  test('07 §B2: a stream that ends without data sends SYN and FIN in two frames', () => {
    const end = new SessionEnd(true);
    new StreamLog(end.session.open()).stream.finish();
    expect(headersOf(end.take())).toEqual([`window ${syn} 1 0`, `window ${fin} 1 0`]);
  });

  test('07 §B2: the answer carries ACK, and an open stream is reset with RST', () => {
    const end = new SessionEnd(false);
    end.session.receive(frame(data, syn, 1, 3));
    end.accepted[0]?.stream.send(counted(2));
    expect(headersOf(end.take())).toEqual([`data ${ack} 1 2`]);
    end.accepted[0]?.stream.reset();
    expect(headersOf(end.take())).toEqual([`window ${rst} 1 0`]);
    expect(end.session.streams.size).toBe(0);
  });

  test('07 §B2: a stream that the peer has not heard of is reset without a frame', () => {
    const end = new SessionEnd(true);
    const log = new StreamLog(end.session.open());
    log.stream.send(counted(2));
    log.stream.reset();
    expect(headersOf(end.take())).toEqual([]);
    expect(log.closed).toBe('reset');
  });

  test('07 §B2: no more is sent than the window; credit lets the rest pass', () => {
    const end = new SessionEnd(true);
    new StreamLog(end.session.open()).stream.send(new Uint8Array(windowBytes + 10));
    const sum = (headers: string[]) =>
      headers.reduce((bytes, header) => bytes + Number(header.split(' ')[3]), 0);
    expect(sum(headersOf(end.take()))).toBe(windowBytes);
    end.session.receive(frame(windowUpdate, ack, 1, 4));
    expect(headersOf(end.take())).toEqual(['data 0 1 4']);
    end.session.receive(frame(windowUpdate, 0, 1, 100));
    expect(headersOf(end.take())).toEqual(['data 0 1 6']);
  });

  test('07 §B2: streams take turns', () => {
    const end = new SessionEnd(true);
    for (let count = 0; count < 3; count += 1) {
      new StreamLog(end.session.open()).stream.send(new Uint8Array(40_000));
    }
    const ids = headersOf(end.take()).map((header) => header.split(' ')[2]);
    expect(ids.slice(0, 6)).toEqual(['1', '3', '5', '1', '3', '5']);
  });

  test('07 §B2: credit is given for half a window, while the stream goes on', () => {
    const end = new SessionEnd(false);
    end.session.receive(frame(data, syn, 1, windowBytes));
    const [log] = end.accepted;
    log?.stream.credit(windowBytes / 2 - 1);
    expect(headersOf(end.take())).toEqual([]);
    log?.stream.credit(1);
    expect(headersOf(end.take())).toEqual([`window ${ack} 1 ${windowBytes / 2}`]);
    end.session.receive(frame(data, 0, 1, windowBytes / 2));
    expect(() => end.session.receive(frame(data, 0, 1, 1))).toThrow('exceeds the window');
  });
});

describe('frames that are received', () => {
  test('07 §B2: a ping is answered with its value', () => {
    const end = new SessionEnd(false);
    end.session.receive(frame(ping, syn, 0, 0xdeadbeef));
    expect(hex(end.take())).toBe('0002000200000000deadbeef');
  });

  test('07 §B2: a ping that was answered allows the next; one that was not does not', () => {
    const end = new SessionEnd(true);
    expect(end.session.ping()).toBe(true);
    expect(end.session.ping()).toBe(false);
    end.session.receive(frame(ping, ack, 0, 1));
    expect(end.session.ping()).toBe(true);
  });

  test.each([
    ['data for stream 0', frame(data, 0, 0, 1)],
    ['a stream ID of our side', frame(data, syn, 2, 1)],
    ['stream ID 0 in SYN', frame(windowUpdate, syn, 0, 0)],
    ['a repeated SYN', Buffer.concat([frame(windowUpdate, syn, 1), frame(windowUpdate, syn, 1)])],
    ['a frame above the window', frame(data, syn, 1, windowBytes + 1, 0)],
    ['the same for an unknown stream', frame(data, 0, 9, windowBytes + 1, 0)],
    [
      'credit above 2^32-1',
      Buffer.concat([frame(windowUpdate, syn, 1), frame(windowUpdate, 0, 1, 0xffff_ffff)]),
    ],
    ['an unknown type', encodeHeader({ type: 4, flags: 0, streamId: 0, length: 0 })],
    ['another version', Buffer.from('010000000000000000000000', 'hex')],
  ])('07 §B2: %s ends the connection', (_, bytes) => {
    const end = new SessionEnd(false);
    expect(() => end.session.receive(bytes)).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  test('07 §B2: frames of unknown streams are skipped with their payload', () => {
    const end = new SessionEnd(false);
    end.session.receive(
      Buffer.concat([
        frame(data, 0, 7, 1_000),
        frame(windowUpdate, 0, 7, 5),
        frame(windowUpdate, rst, 7),
        frame(windowUpdate, fin, 7),
        frame(data, syn | fin, 1, 3),
      ]),
    );
    expect(end.accepted).toHaveLength(1);
    expect(end.accepted[0]).toMatchObject({ received: 3, ended: true, inOrder: true });
  });

  test('07 §B2: a refused stream is reset, its data skipped', () => {
    const end = new SessionEnd(false);
    end.refuse = true;
    end.session.receive(Buffer.concat([frame(data, syn, 1, 100), frame(data, fin, 1, 100)]));
    expect(headersOf(end.take())).toEqual([`window ${rst} 1 0`]);
    expect(end.session.streams.size).toBe(0);
  });

  test('07 §B2: after GOAWAY of the peer no stream is opened; after ours none is accepted', () => {
    const end = new SessionEnd(false);
    end.session.receive(frame(goAway, 0, 0, 0));
    expect(end.goneAway).toBe(0);
    expect(() => end.session.open()).toThrow(expect.objectContaining({ code: 'closed' }));
    end.session.goAway();
    end.session.receive(frame(windowUpdate, syn, 1));
    expect(headersOf(end.take())).toEqual(['goaway 0 0 0', `window ${rst} 1 0`]);
  });

  test('07 §B2: the last stream ID is used, then none', () => {
    const end = new SessionEnd(true, { firstStreamId: 0xffff_ffff });
    expect(end.session.open().id).toBe(0xffff_ffff);
    expect(end.session.isExhausted).toBe(true);
    expect(() => end.session.open()).toThrow(expect.objectContaining({ code: 'closed' }));
  });

  test('07 §B2: answers that the peer does not read end the connection', () => {
    const end = new SessionEnd(false, { controlFrames: 100 });
    const pings = Buffer.concat(Array(102).fill(frame(ping, syn, 0, 1)));
    expect(() => end.session.receive(pings)).toThrow('reads no answers');
  });

  test('07 §B2: frames cut at every byte have the same effect', () => {
    const bytes = Buffer.concat([
      frame(data, syn, 1, 40),
      frame(ping, syn, 0, 9),
      frame(windowUpdate, 0, 1, 7),
      frame(data, 0, 1, 0),
      frame(data, fin, 1, 0),
      frame(windowUpdate, syn, 3),
      frame(windowUpdate, rst, 3),
    ]);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const end = new SessionEnd(false);
      end.session.receive(bytes.subarray(0, cut));
      end.session.receive(bytes.subarray(cut));
      expect(end.accepted).toHaveLength(2);
      expect(end.accepted[0]).toMatchObject({ received: 40, ended: true, closed: undefined });
      expect(end.accepted[1]).toMatchObject({ received: 0, closed: 'peer reset' });
      expect(headersOf(end.take())).toEqual([`ping ${ack} 0 9`]);
    }
  });
});

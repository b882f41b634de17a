import { describe, expect, test } from 'vitest';
import { defaultPeerLimits } from '../src/index.ts';
import { encodeLines, Proposal, Selection, type SelectionStep } from '../src/multistream.ts';
import { hex } from './support/bytes.ts';

const header = '/multistream/1.0.0';
const rpc = '/svc/relay/1.0.0';
const selection = () => new Selection((protocol) => protocol === rpc, defaultPeerLimits);
const proposal = () => new Proposal(rpc, defaultPeerLimits);

/** Feeds bytes one at a time until a protocol is agreed. */
function byteByByte(bytes: Uint8Array): SelectionStep & { replies: string } {
  const side = selection();
  const replies: Uint8Array[] = [];
  for (let index = 0; index < bytes.length; index += 1) {
    const step = side.receive(bytes.subarray(index, index + 1));
    replies.push(step.reply);
    if (step.agreed !== undefined) return { ...step, replies: hex(Buffer.concat(replies)) };
  }
  throw new Error('no agreement');
}

describe('multistream-select', () => {
  test('07 §B2: a line is length, text and line feed', () => {
    expect(hex(encodeLines(header))).toBe(`13${hex(Buffer.from('/multistream/1.0.0\n'))}`);
    expect(hex(encodeLines('na'))).toBe('036e610a');
  });

  test('07 §B2: header and proposal in one piece are agreed, data after them is kept', () => {
    const step = selection().receive(Buffer.concat([proposal().request, Buffer.from('data')]));
    expect(step.agreed?.protocol).toBe(rpc);
    expect(Buffer.from(step.agreed?.rest ?? []).toString()).toBe('data');
    expect(hex(step.reply)).toBe(hex(encodeLines(header, rpc)));
  });

  test('07 §B2: pieces of one byte lead to the same replies', () => {
    const { agreed, replies } = byteByByte(encodeLines(header, '/other', rpc));
    expect(agreed?.protocol).toBe(rpc);
    expect(replies).toBe(hex(encodeLines(header, 'na', rpc)));
  });

  test('07 §B2: a proposer reads agreement cut at every byte, and the data after it', () => {
    const reply = Buffer.concat([encodeLines(header, rpc), Buffer.from('x')]);
    for (let cut = 0; cut < reply.length; cut += 1) {
      const side = proposal();
      const early = side.receive(reply.subarray(0, cut));
      const late = early ?? side.receive(reply.subarray(cut));
      expect(hex(late ?? new Uint8Array())).toBe(early === undefined ? '78' : '');
    }
  });

  test('07 §B2: a refusal is not_supported', () => {
    expect(() => proposal().receive(encodeLines(header, 'na'))).toThrow(
      expect.objectContaining({ code: 'not_supported' }),
    );
  });

  test.each([
    ['another header', encodeLines('/multistream/2.0.0')],
    ['a reply without being asked', encodeLines(header, '/other')],
    ['a line that is too long', Uint8Array.of(0x81, 0x02, 0x61)],
    ['a length that is not the shortest', Uint8Array.of(0x81, 0x00, 0x0a)],
    ['no line feed', Uint8Array.of(1, 0x61)],
    ['an empty line', Uint8Array.of(0)],
  ])('07 §B2: a proposer refuses %s', (_, bytes) => {
    expect(() => proposal().receive(bytes)).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  test('07 §B2: the eighth unknown proposal ends the negotiation, the seventh does not', () => {
    const side = selection();
    side.receive(encodeLines(header, ...Array<string>(7).fill('/other')));
    expect(() => side.receive(encodeLines('/other'))).toThrow('too many proposals');
    const other = selection();
    other.receive(encodeLines(header, ...Array<string>(7).fill('/other')));
    expect(other.receive(encodeLines(rpc)).agreed?.protocol).toBe(rpc);
  });

  test('07 §B2: a line of 256 bytes is read, one of 257 is refused', () => {
    const side = selection();
    side.receive(encodeLines(header));
    expect(hex(side.receive(encodeLines('/'.repeat(255))).reply)).toBe(hex(encodeLines('na')));
    expect(() => side.receive(encodeLines('/'.repeat(256)))).toThrow('length of a line');
  });
});

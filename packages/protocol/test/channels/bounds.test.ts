import { expect, test } from 'vitest';
import { type ChannelPage, type ChannelRange, checkChannelPageBounds } from '../../src/index.ts';

function page(sequences: readonly number[], has_more = false): ChannelPage {
  const events = sequences.map((sequence) => ({
    sequence,
    descriptor_rev: 0,
    payload: { $type: 'svc.future' },
    accepted_at: 1,
    signer_device_id: `dev_${'A'.repeat(22)}`,
  }));
  return { events, certificates: [], has_more };
}

test.each<[ChannelRange, readonly number[]]>([
  [{}, [0, 7, 9]],
  [{ after: -1, limit: 3 }, [0, 7, 9]],
  [{ after: 6 }, [7]],
  [{ before: 8 }, [0, 7]],
  [{ before: 0 }, []],
])('06 §8.11: a page within %o is taken', (range, sequences) => {
  expect(() => checkChannelPageBounds(page(sequences), range)).not.toThrow();
});

test.each<[string, ChannelRange, ChannelPage]>([
  ['at its lower bound', { after: 7 }, page([7])],
  ['at its upper bound', { before: 7 }, page([6, 7])],
  ['longer than asked for', { limit: 1 }, page([6, 7])],
  ['empty with has_more', {}, page([], true)],
])('06 §8.11: a page %s is refused', (_, range, refused) => {
  expect(() => checkChannelPageBounds(refused, range)).toThrow(
    expect.objectContaining({ code: 'bad_request' }),
  );
});

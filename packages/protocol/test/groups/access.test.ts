import { describe, expect, test } from 'vitest';
import {
  closeAccess,
  type DeviceAccess,
  hasOpenAccess,
  mayReadKeys,
  mayReadMessage,
  openAccessAfter,
  openAccessAt,
} from '../../src/index.ts';

const readable = (intervals: DeviceAccess[]) =>
  Array.from({ length: 10 }, (_, sequence) => sequence).filter((sequence) =>
    mayReadMessage(intervals, sequence),
  );
const epochs = (intervals: DeviceAccess[]) =>
  Array.from({ length: 10 }, (_, epoch) => epoch).filter((epoch) => mayReadKeys(intervals, epoch));

describe('05 §10: access intervals', () => {
  test('§10.2: the creator and the devices an approval names begin with the event', () => {
    const interval = openAccessAt({ sequence: 6, epoch: 3 });
    expect(readable([interval])).toEqual([6, 7, 8, 9]);
    expect(epochs([interval])).toEqual([3, 4, 5, 6, 7, 8, 9]);
  });

  test('§10.2: any other device begins after the head, with the keys of the current epoch', () => {
    const interval = openAccessAfter({ sequence: 6, epoch: 3 });
    expect(readable([interval])).toEqual([7, 8, 9]);
    expect(epochs([interval])).toEqual([3, 4, 5, 6, 7, 8, 9]);
  });

  test('§10.3: an inactive device keeps its closed range, a new one is added later', () => {
    const first = closeAccess(
      openAccessAt({ sequence: 2, epoch: 1 }),
      { sequence: 4, epoch: 2 },
      true,
    );
    expect(hasOpenAccess([first])).toBe(false);
    const second = openAccessAfter({ sequence: 6, epoch: 4 });
    expect(readable([first, second])).toEqual([2, 3, 4, 7, 8, 9]);
    expect(epochs([first, second])).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
    expect(hasOpenAccess([first, second])).toBe(true);
  });

  test('§10.3: leaving, removal, ban and recovery end the authority of all ranges, old ones too', () => {
    const old = closeAccess(
      openAccessAt({ sequence: 0, epoch: 0 }),
      { sequence: 2, epoch: 0 },
      true,
    );
    const open = openAccessAfter({ sequence: 4, epoch: 1 });
    const ended = [old, open].map((each) => closeAccess(each, { sequence: 8, epoch: 3 }, false));
    expect(readable(ended)).toEqual([]);
    expect(epochs(ended)).toEqual([]);
    expect(hasOpenAccess(ended)).toBe(false);
    // The end of what was closed before does not move.
    expect(ended[0]?.messages).toEqual({ from: 0, to: 2 });
    expect(closeAccess(ended[1] as DeviceAccess, { sequence: 9, epoch: 9 }, true).authority).toBe(
      false,
    );
  });

  test('no interval, no message and no key', () => {
    expect(readable([])).toEqual([]);
    expect(epochs([])).toEqual([]);
    expect(hasOpenAccess([])).toBe(false);
  });
});

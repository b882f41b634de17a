import { describe, expect, test } from 'vitest';
import { check, type Rule } from './checker.ts';
import { figuresOf } from './figures.ts';
import type { LogEntry, Outcome, Seen } from './log.ts';

/** What to forge in a log that is otherwise as it must be. */
type Forgery = (log: Seen[]) => void;

let calls = 0;

/** A call and its answer. */
function call(device: string, outcome: Outcome, more: { content?: string; nonce?: string } = {}) {
  calls += 1;
  const method = more.content === undefined ? 'message.timeline.sync' : 'message.send';
  return [
    { kind: 'call', call: calls, device, method, ...more },
    { kind: 'answer', call: calls, outcome },
  ] satisfies Seen[];
}

function sending(id: string, content = id): Seen {
  const readers = ['a1', 'b1', 'b2'];
  return { kind: 'sending', id, content, from: 'A', to: 'B', readers };
}

/** A message from A's device to B's two, confirmed at once. */
function sent(id: string, content = id): Seen[] {
  return [sending(id, content), ...call('a1', 'ok', { content })];
}

function page(
  device: string,
  records: readonly (readonly [sequence: number, id: string])[],
  more: { after?: number; reading?: 'on' | 'again' } = {},
): Seen {
  return {
    kind: 'page',
    account: device.charAt(0).toUpperCase(),
    device,
    reading: more.reading ?? 'on',
    after: more.after ?? -1,
    entries: records.map(([sequence, id]) => ({ sequence, id, content: id })),
  };
}

function head(device: string, value: number, connection = 1): Seen {
  const account = device.charAt(0).toUpperCase();
  return { kind: 'head', account, device, connection, head: value };
}

const both = [
  [0, 'm1'],
  [1, 'm2'],
] as const;

/** Two messages one after another; everybody reads them, b2 in two pages, b1 once more. */
function good(): Seen[] {
  return [
    ...sent('m1'),
    head('b1', 0),
    ...sent('m2'),
    head('b1', 1),
    page('a1', both),
    page('b1', both),
    page('b2', both.slice(0, 1)),
    page('b2', both.slice(1), { after: 0 }),
    page('b1', both, { reading: 'again' }),
  ];
}

function timed(log: readonly Seen[]): LogEntry[] {
  return log.map((seen, index) => ({ ...seen, at: index }));
}

function rulesBroken(log: readonly Seen[]): Rule[] {
  return [...new Set(check(timed(log)).map(({ rule }) => rule))];
}

function forged(forge: Forgery): Rule[] {
  const log = good();
  forge(log);
  return rulesBroken(log);
}

const pagesOf = (log: Seen[], device: string) =>
  log.filter((seen) => seen.kind === 'page' && seen.device === device);

/** Puts other records into the page that a device was shown. */
function reshow(log: Seen[], device: string, records: readonly (readonly [number, string])[]) {
  const [first] = pagesOf(log, device) as [Seen];
  log[log.indexOf(first)] = page(device, records);
}

test('a log in which every promise is kept has no finding', () => {
  expect(check(timed(good()))).toEqual([]);
});

describe('timelines', () => {
  test('a confirmed message that a recipient never gets is lost', () => {
    expect(forged((log) => reshow(log, 'b1', [[0, 'm1']]))).toEqual(['lost']);
  });

  test('a confirmed message that the sender never gets is lost', () => {
    expect(forged((log) => reshow(log, 'a1', [[1, 'm2']]))).toEqual(['lost']);
  });

  test('a message that was there and is not found again is lost', () => {
    expect(forged((log) => log.push(page('b2', [[1, 'm2']], { reading: 'again' })))).toEqual([
      'lost',
    ]);
  });

  test('a message that is only found on reading again is lost to who went on', () => {
    const log = good().filter((seen) => seen.kind !== 'page' || seen.device !== 'b2');
    log.push(page('b2', both, { reading: 'again' }));
    expect(rulesBroken(log)).toEqual(['lost']);
  });

  test('a message at two sequences is doubled', () => {
    expect(forged((log) => reshow(log, 'b1', [...both, [2, 'm1']]))).toContain('doubled');
  });

  test('a message at another sequence for another device is doubled', () => {
    const rules = forged((log) =>
      reshow(log, 'b1', [
        [0, 'm1'],
        [2, 'm2'],
      ]),
    );
    expect(rules).toContain('doubled');
  });

  test('a sequence with other content for another device is used twice', () => {
    const other = [
      [0, 'm2'],
      [1, 'm1'],
    ] as const;
    expect(forged((log) => reshow(log, 'b1', other))).toContain('reused');
  });

  test('a sequence that stands for another message later is used twice', () => {
    const log = [...good(), ...sent('m3')];
    for (const device of ['a1', 'b1', 'b2']) log.push(page(device, [[1, 'm3']], { after: 0 }));
    expect(rulesBroken(log)).toContain('reused');
  });

  test('a page that is not ascending, or repeats earlier entries, is found', () => {
    expect(forged((log) => reshow(log, 'b1', [...both].reverse()))).toContain('unsorted');
    const repeated = page('b1', both.slice(1), { after: 1 });
    expect(forged((log) => log.push(repeated))).toContain('unsorted');
  });

  test('two messages in the other order than they were sent are swapped', () => {
    const swapped = [
      [0, 'm2'],
      [1, 'm1'],
    ] as const;
    const log = [...sent('m1'), ...sent('m2')];
    for (const device of ['a1', 'b1', 'b2']) log.push(page(device, swapped));
    expect(rulesBroken(log)).toEqual(['swapped']);
  });

  test('messages that were under way together may have either order', () => {
    const swapped = [
      [0, 'm2'],
      [1, 'm1'],
    ] as const;
    const [first, second] = [sent('m1'), sent('m2')];
    const log = [first[0], second[0], ...first.slice(1), ...second.slice(1)] as Seen[];
    for (const device of ['a1', 'b1', 'b2']) log.push(page(device, swapped));
    expect(rulesBroken(log)).toEqual([]);
  });
});

describe('sends', () => {
  const everybody = (...records: (readonly [number, string])[]) => [
    ...['a1', 'b1', 'b2'].map((device) => page(device, [...both, ...records])),
    page('b1', [...both, ...records], { reading: 'again' }),
  ];

  test('a refused message that appears is a ghost', () => {
    const log = [...good(), sending('m3'), ...call('a1', 'forbidden', { content: 'm3' })];
    expect(rulesBroken(log)).toEqual([]);
    expect(rulesBroken([...log, ...everybody([2, 'm3'])])).toEqual(['ghost']);
  });

  test('the refused one of two messages with one ID is a ghost, and the other is doubled', () => {
    const log = [
      ...good(),
      sending('m1', 'other'),
      ...call('a1', 'state_conflict', { content: 'other' }),
    ];
    expect(rulesBroken(log)).toEqual([]);
    const shown = page('b1', [[2, 'other']], { after: 1 });
    if (shown.kind === 'page') {
      log.push({ ...shown, entries: [{ sequence: 2, id: 'm1', content: 'other' }] });
    }
    expect(rulesBroken(log)).toEqual(['doubled', 'ghost']);
  });

  test('a message that was never sent, or is for another account, is a ghost', () => {
    expect(rulesBroken([...good(), ...everybody([2, 'm3'])])).toEqual(['ghost']);
    expect(rulesBroken([...good(), page('c1', [[0, 'm1']])])).toEqual(['ghost']);
  });

  test('a message of unknown outcome may appear or not', () => {
    for (const outcome of ['lost', 'temporarily_unavailable', 'rate_limited'] as const) {
      const log = [...good(), sending('m3'), ...call('a1', outcome, { content: 'm3' })];
      expect(rulesBroken(log)).toEqual([]);
      expect(rulesBroken([...log, ...everybody([2, 'm3'])])).toEqual([]);
    }
  });

  test('a try without an answer and one with make one message', () => {
    const log = [...good(), sending('m3')];
    log.push(...call('a1', 'lost', { content: 'm3' }), ...call('a1', 'ok', { content: 'm3' }));
    expect(rulesBroken(log)).toEqual(['lost']);
    expect(rulesBroken([...log, ...everybody([2, 'm3'])])).toEqual([]);
  });

  test('a message that is confirmed and then refused has changed', () => {
    const refused = call('a1', 'state_conflict', { content: 'm1' });
    expect(rulesBroken([...good(), ...refused])).toContain('changed');
  });

  test('an internal error is found', () => {
    expect(rulesBroken([...good(), ...call('b1', 'internal_error')])).toEqual(['internal error']);
  });
});

describe('heads', () => {
  test('a head that sinks on a connection goes back; on another one it repeats', () => {
    expect(forged((log) => log.push(head('b1', 0)))).toEqual(['backwards']);
    expect(forged((log) => log.push(head('b1', 0, 2)))).toEqual([]);
  });

  test('a message sent after a later head was seen goes back', () => {
    expect(forged((log) => log.unshift(head('b2', 1)))).toEqual(['backwards']);
  });

  test('a message sent after a page showed a later one goes back', () => {
    const log = [sending('m1'), page('b1', [[5, 'm1']]), sending('m2')];
    log.push(
      page('b1', [[3, 'm2']]),
      page('b2', [
        [3, 'm2'],
        [5, 'm1'],
      ]),
    );
    log.push(
      page('a1', [
        [0, 'm1'],
        [1, 'm2'],
      ]),
    );
    expect(rulesBroken(log)).toEqual(['backwards']);
  });

  test('a head without its record is a phantom', () => {
    expect(forged((log) => log.push(head('b1', 2)))).toEqual(['phantom']);
  });
});

describe('removed devices', () => {
  const removal = (kind: 'removing' | 'removed'): Seen => ({
    kind,
    account: 'B',
    device: 'b2',
    revision: 7,
  });

  /** B's second device is removed after the second message; a third one follows. */
  function removed(...after: Seen[]): Rule[] {
    const third = [[2, 'm3']] as const;
    return rulesBroken([
      ...good(),
      removal('removing'),
      removal('removed'),
      ...sent('m3'),
      page('a1', third, { after: 1 }),
      page('b1', third, { after: 1 }),
      page('b1', [...both, ...third], { reading: 'again' }),
      ...after,
    ]);
  }

  test('what was on its way to it may arrive, and it need not get what follows', () => {
    expect(removed(head('b2', 1))).toEqual([]);
  });

  test('a head of a message sent after the confirmation is a late notice', () => {
    expect(removed(head('b2', 2))).toEqual(['late notice']);
    expect(removed(head('b1', 2))).toEqual([]);
  });

  test('who says something else under an old ID afterwards makes no old head a late notice', () => {
    const other = [sending('m2', 'other'), ...call('a1', 'state_conflict', { content: 'other' })];
    expect(removed(head('b2', 1), ...other)).toEqual([]);
  });

  test('a head after such a message goes back too, whatever its sender and time', () => {
    const log = [
      ...good(),
      sending('m4'),
      removal('removing'),
      removal('removed'),
      ...sent('m3'),
      page(
        'a1',
        [
          [2, 'm3'],
          [3, 'm4'],
        ],
        { after: 1 },
      ),
      page(
        'b1',
        [
          [2, 'm3'],
          [3, 'm4'],
        ],
        { after: 1 },
      ),
      page('b1', [...both, [2, 'm3'], [3, 'm4']], { reading: 'again' }),
    ];
    expect(rulesBroken([...log, head('b2', 3)])).toEqual(['late notice']);
  });

  const revision = (device: string, value: number): Seen => ({
    kind: 'revision',
    account: 'B',
    device,
    connection: 1,
    revision: value,
  });

  test('the revision that removed it is a late notice whenever it comes', () => {
    expect(removed(revision('b2', 7))).toEqual(['late notice']);
    expect(removed(revision('b2', 6), revision('b1', 7))).toEqual([]);
    const early = [...good(), revision('b2', 7), removal('removing'), removal('removed')];
    expect(rulesBroken(early)).toEqual([]);
    const between = [...good(), removal('removing'), revision('b2', 7), removal('removed')];
    expect(rulesBroken(between)).toEqual(['late notice']);
  });

  test('its calls and its authentication must be refused', () => {
    expect(removed(...call('b2', 'ok'))).toEqual(['still served']);
    expect(removed(...call('b2', 'bad_request'))).toEqual(['still served']);
    expect(removed(...call('b2', 'unauthorized'), ...call('b2', 'lost'))).toEqual([]);
    expect(removed(...call('b2', 'ok', { nonce: 'n' }))).toEqual(['still served']);
    expect(removed(...call('b2', 'device_unknown', { nonce: 'n' }))).toEqual([]);
  });

  test('a call that was under way when it was removed may have any outcome', () => {
    const [asked, answered] = call('b2', 'ok');
    const log = [...good(), removal('removing'), asked, removal('removed'), answered] as Seen[];
    expect(rulesBroken(log)).toEqual([]);
  });

  test('a device that is not removed and not served is cut off', () => {
    expect(removed(...call('b1', 'unauthorized'))).toEqual(['cut off']);
    expect(removed(...call('b1', 'device_unknown', { nonce: 'n' }))).toEqual(['cut off']);
  });
});

test('a nonce that succeeds twice is found', () => {
  const once = [...good(), ...call('b1', 'ok', { nonce: 'n1' })];
  const other = call('b1', 'ok', { nonce: 'n2' });
  const refused = call('b1', 'unauthorized', { nonce: 'n1' });
  expect(rulesBroken([...once, ...other, ...refused])).toEqual([]);
  expect(rulesBroken([...once, ...call('b2', 'ok', { nonce: 'n1' })])).toEqual(['nonce reused']);
});

test('the figures count messages and the time without a success', () => {
  const log = timed([
    ...good(),
    { kind: 'fault', name: 'power cut' },
    sending('m3'),
    ...call('a1', 'lost', { content: 'm3' }),
    ...call('a1', 'ok', { content: 'm3' }),
    { kind: 'recovered', name: 'power cut' },
    sending('m4'),
    ...call('a1', 'forbidden', { content: 'm4' }),
  ]);
  const last = log.findLast((seen) => seen.kind === 'answer' && seen.outcome === 'ok')?.at ?? 0;
  expect(figuresOf(log, check(log))).toMatchObject({
    accepted: 3,
    refused: 1,
    retried: 1,
    lost: 4,
    doubled: 0,
    heads: 2,
    pages: 5,
    // From the answer to the second message on.
    faults: [{ name: 'power cut', accepted: 1, longest: last - 6, everybody: last - 6 }],
  });
});

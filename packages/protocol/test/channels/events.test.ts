import { describe, expect, test } from 'vitest';
import {
  type ChannelEvent,
  type DeviceCertificate,
  verifyChannelPage,
  verifyChannelResolution,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  channelId,
  codeOf,
  deletion,
  descriptor,
  edit,
  event,
  moderator,
  network,
  owner,
  ownerKey,
  person,
  post,
  relayId,
  resigned,
  revision,
  run,
  stranger,
  text,
} from './fixture.ts';

const known = { channelId, relayId };
const moderated = revision(1, { moderators: [moderator.account] });
const everyone = [owner, moderator, stranger].map(({ certificate }) => certificate);

const page = (events: readonly ChannelEvent[], certificates = everyone) => ({
  events,
  certificates,
  has_more: false,
});

const read = (events: readonly ChannelEvent[], more: Partial<typeof known> = {}) =>
  verifyChannelPage(network, page(events), { ...known, ...more });

/** Outcome per sequence: `kind` of what was verified, or the code of what was refused. */
function outcomes(events: readonly ChannelEvent[], more: JsonObject = {}): Record<number, string> {
  const { events: verified, refused } = read(events, more);
  return Object.fromEntries([
    ...verified.map(({ sequence, kind }) => [sequence, kind]),
    ...refused.map(({ sequence, error }) => [sequence, error.code]),
  ]);
}

const created = event(0, descriptor);
const updated = event(1, moderated, { revision: 1 });

describe('06 §10.1: a page of events', () => {
  test('every kind verifies, with the account that signed and the host’s claims', () => {
    const later = { revision: 1, by: moderator };
    const result = read([
      created,
      updated,
      event(2, post({ body: text('x') }), { revision: 1 }),
      event(5, edit({ target_sequence: 2, body: text('y') }, moderator), later),
      event(9, deletion({ target_sequence: 2 }, moderator), later),
      event(12, { $type: 'svc.channel.poll' }, { revision: 1 }),
    ]);
    expect(result.refused).toEqual([]);
    expect(result.missing).toEqual([]);
    expect(result.events.map(({ sequence, kind, account }) => [sequence, kind, account])).toEqual([
      [0, 'descriptor', owner.account],
      [1, 'descriptor', owner.account],
      [2, 'post', owner.account],
      [5, 'edit', moderator.account],
      [9, 'delete', moderator.account],
      [12, 'unknown', owner.account],
    ]);
    expect(result.events[3]).toMatchObject({ acceptedAt: 1_750_000_005, descriptorRevision: 1 });
    expect([...result.descriptors.values()]).toEqual([descriptor, moderated]);
  });

  test('an empty page verifies, and an extra certificate is no fault', () => {
    expect(read([])).toEqual({ events: [], descriptors: new Map(), missing: [], refused: [] });
  });

  test('a certificate whose period is long over verifies what it signed', async () => {
    const past = await person(ownerKey, { signingSeed: run(0, 32), notBefore: 0, expiresAt: 1 });
    expect(past.deviceId).toBe(owner.deviceId);
    const value = page([created], [past.certificate]);
    expect(verifyChannelPage(network, value, known).events).toHaveLength(1);
  });

  test.each<[string, readonly ChannelEvent[]]>([
    ['repeated', [created, event(0, descriptor)]],
    ['descending', [updated, created]],
  ])('%s sequences refuse the page', (_, events) => {
    expect(codeOf(() => read(events))).toBe('bad_request');
  });

  test.each<[string, unknown]>([
    ['has_more', { ...page([]), has_more: undefined }],
    ['an event’s accepted_at', page([{ ...created, accepted_at: undefined as never }])],
    ['a payload’s $type', page([{ ...created, payload: {} as never }])],
    ['a signer', page([{ ...created, signer_device_id: 'dev_x' }])],
  ])('a page without %s is refused', (_, value) => {
    expect(codeOf(() => verifyChannelPage(network, value, known))).toBe('bad_request');
  });
});

describe('06 §5.2: certificates of a page', () => {
  const refuse = (certificates: DeviceCertificate[]) =>
    codeOf(() => verifyChannelPage(network, page([created], certificates), known));

  test('an unsigned one among valid ones: invalid_signature', () => {
    const tampered = { ...stranger.certificate, expires_at: 1_759_999_999 };
    expect(refuse([owner.certificate, tampered])).toBe('invalid_signature');
  });

  test('a device twice: bad_request', () => {
    expect(refuse([owner.certificate, owner.certificate])).toBe('bad_request');
  });

  test('a signer that has none: bad_request', () => {
    expect(refuse([moderator.certificate])).toBe('bad_request');
    expect(refuse([])).toBe('bad_request');
  });

  test('the order means nothing', () => {
    const reversed = page([created], [...everyone].reverse());
    expect(verifyChannelPage(network, reversed, known).events).toHaveLength(1);
  });
});

describe('06 §10.1: descriptor events', () => {
  test.each<[string, ChannelEvent, string]>([
    ['outside a revision that is not its own', event(1, moderated, { revision: 2 }), 'bad_request'],
    ['at sequence 0 with another revision', event(0, moderated, { revision: 1 }), 'bad_request'],
    ['of revision 0 at another sequence', event(3, descriptor), 'bad_request'],
    ['of a host that changed it', event(0, { ...descriptor, name: 'x' }), 'invalid_signature'],
    [
      'signed by a moderator',
      event(2, resigned(moderated, {}, moderator), { revision: 1, by: moderator }),
      'bad_request',
    ],
    [
      'of another channel',
      event(2, revision(1, { nonce: 'AQECAwQFBgcICQoLDA0ODw' }), { revision: 1 }),
      'bad_request',
    ],
  ])('one %s is not adopted', (_, bad, code) => {
    const { events, refused, descriptors } = read([bad]);
    expect(events).toEqual([]);
    expect(refused.map(({ error }) => error.code)).toEqual([code]);
    expect(descriptors.size).toBe(0);
  });

  test('a second descriptor of a known revision replaces nothing', () => {
    const other = event(2, revision(1, { name: 'other' }), { revision: 1 });
    expect(outcomes([updated, other])).toEqual({ 1: 'descriptor', 2: 'bad_request' });
    const descriptors = new Map([[1, moderated]]);
    const result = verifyChannelPage(network, page([other]), { ...known, descriptors });
    expect(result.refused).toHaveLength(1);
    expect(result.descriptors.get(1)).toBe(moderated);
    expect(descriptors).toEqual(new Map([[1, moderated]]));
  });

  test('from another relay nothing is adopted', () => {
    const other = { relayId: '0x0123456789abcdef0123456789abcdef01234567' };
    expect(outcomes([created], other)).toEqual({ 0: 'bad_request' });
  });
});

describe('06 §10.1: content events', () => {
  test.each<[string, ChannelEvent, string]>([
    ['who never could', event(2, post(undefined, stranger), { by: stranger }), 'forbidden'],
    [
      'before becoming moderator',
      event(2, post(undefined, moderator), { by: moderator }),
      'forbidden',
    ],
    ['with words put in the mouth', event(2, { ...post(), body: text('z') }), 'invalid_signature'],
    ['under another device', event(2, post(), { by: moderator }), 'invalid_signature'],
    [
      'in another channel',
      event(2, post({ body: text('x'), channel_id: 'chan_AAAAAAAAAAAAAAAAAAAAAA' })),
      'bad_request',
    ],
    ['that says nothing', event(2, post({})), 'bad_request'],
    ['beyond its size', event(2, post({ body: text('x'.repeat(65_536)) })), 'request_too_large'],
    ['an edit of nothing', event(2, edit({})), 'bad_request'],
    ['a deletion without words', event(2, deletion({ reason: '' })), 'bad_request'],
  ])('one by someone %s is not adopted', (_, bad, code) => {
    expect(outcomes([created, bad, event(3, post())])).toEqual({
      0: 'descriptor',
      2: code,
      3: 'post',
    });
  });

  test('sequence 0 is no place for a post', () => {
    const descriptors = new Map([[0, descriptor]]);
    const result = verifyChannelPage(network, page([event(0, post())]), { ...known, descriptors });
    expect(result.refused).toHaveLength(1);
  });

  test('one with an unknown descriptor waits, and its revision is named once', () => {
    const events = [3, 4].map((sequence) =>
      event(sequence, post({ body: text(`${sequence}`) }, moderator), {
        revision: 1,
        by: moderator,
      }),
    );
    const first = read(events);
    expect([first.events, first.refused, first.missing]).toEqual([[], [], [1]]);
    const descriptors = new Map([[1, moderated]]);
    const second = verifyChannelPage(network, page(events), { ...known, descriptors });
    expect(second.events.map(({ sequence }) => sequence)).toEqual([3, 4]);
    expect(second.missing).toEqual([]);
  });
});

describe('06 §8.3: the answer of channel.resolve', () => {
  const answer = { descriptor, signer_certificate: owner.certificate };

  test('verifies, of the revision asked for', () => {
    expect(verifyChannelResolution(network, answer, known)).toBe(descriptor);
    expect(verifyChannelResolution(network, answer, { ...known, revision: 0 })).toBe(descriptor);
  });

  test.each<[string, unknown, object, string]>([
    ['another revision', answer, { revision: 1 }, 'bad_request'],
    ['another channel', answer, { channelId: 'chan_AAAAAAAAAAAAAAAAAAAAAA' }, 'bad_request'],
    ['no certificate', { descriptor }, {}, 'bad_request'],
    [
      'a certificate of another account',
      { descriptor, signer_certificate: moderator.certificate },
      {},
      'bad_request',
    ],
    [
      'an unsigned certificate',
      { descriptor, signer_certificate: { ...owner.certificate, extra: 1 } },
      {},
      'invalid_signature',
    ],
    [
      'a changed descriptor',
      { ...answer, descriptor: { ...descriptor, name: 'x' } },
      {},
      'invalid_signature',
    ],
  ])('%s is refused', (_, value, more, code) => {
    expect(codeOf(() => verifyChannelResolution(network, value, { ...known, ...more }))).toBe(code);
  });
});

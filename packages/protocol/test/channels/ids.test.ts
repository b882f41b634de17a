import { describe, expect, test } from 'vitest';
import { channelIdInput } from '../../src/channels/ids.ts';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  checkChannelId,
  checkChannelSubscription,
  deriveChannelId,
  Network,
  sha256Text,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import { channelId, codeOf, context, descriptor, facts, moderator, network } from './fixture.ts';

describe('06 §3: the channel ID', () => {
  test('is the one of the worked example (06 §13)', () => {
    expect(new TextDecoder().decode(channelIdInput(network, facts))).toBe(
      canonicalJson({
        $context: context,
        $type: 'svc.channel.identity',
        creator: 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT',
        nonce: 'AAECAwQFBgcICQoLDA0ODw',
        relay_id: '0xff3380fa8e020053f1d1274f428cd542438f06d5',
      }),
    );
    expect(sha256Text(network.primitives, channelIdInput(network, facts))).toBe(
      'sha256:0NM6hMaxkR3u59ygBrOYe5jnhj0k72FeW3fNxHhGLqk',
    );
    expect(deriveChannelId(network, facts)).toBe('chan_0NM6hMaxkR3u59ygBrOYew');
  });

  test.each([
    ['nonce', { nonce: 'AQECAwQFBgcICQoLDA0ODw' }],
    ['creator', { creator: moderator.account }],
    ['relay_id', { relay_id: '0x0123456789abcdef0123456789abcdef01234567' }],
  ])('depends on %s', (_, change) => {
    expect(deriveChannelId(network, { ...facts, ...change })).not.toBe(channelId);
  });

  test('depends on the network context and on the service word', () => {
    const primitives = noblePrimitives;
    const word = new Network({ context, word: 'other', primitives });
    const elsewhere = new Network({ context: `${context.slice(0, -1)}4`, primitives });
    expect(deriveChannelId(word, facts)).not.toBe(channelId);
    expect(deriveChannelId(elsewhere, facts)).not.toBe(channelId);
  });

  test('takes nothing else of a descriptor', () => {
    const renamed = { ...descriptor, name: 'x', revision: 9 };
    expect(deriveChannelId(network, renamed)).toBe(channelId);
  });

  test('is recomputed: another one is bad_request', () => {
    expect(checkChannelId(network, descriptor)).toBeUndefined();
    const other = { ...descriptor, channel_id: 'chan_AAAAAAAAAAAAAAAAAAAAAA' };
    expect(codeOf(() => checkChannelId(network, other))).toBe('bad_request');
  });
});

describe('06 §9.1: the subscription set', () => {
  test.each([[[]], [[channelId]], [[channelId, 'chan_AAAAAAAAAAAAAAAAAAAAAA']]])(
    'distinct channels pass: %j',
    (channel_ids) => {
      expect(checkChannelSubscription({ channel_ids })).toBeUndefined();
    },
  );

  test('a channel named twice is bad_request', () => {
    const channel_ids = [channelId, 'chan_AAAAAAAAAAAAAAAAAAAAAA', channelId];
    expect(codeOf(() => checkChannelSubscription({ channel_ids }))).toBe('bad_request');
  });
});

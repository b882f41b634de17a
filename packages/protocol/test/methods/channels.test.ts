import { describe, expect, test } from 'vitest';
import { channelMethods, checkSchema, type TSchema } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { channelNotifications } from '../../src/methods/channels.ts';
import {
  channelId,
  codeOf,
  deletion,
  descriptor,
  edit,
  event,
  owner,
  post,
} from '../channels/fixture.ts';

const accepts = (schema: TSchema, value: unknown) => checkSchema(schema, value);

describe('06 §8: shapes of parameters and results', () => {
  const { params: read, result: page } = channelMethods['channel.read'];
  const id = { channel_id: channelId };

  test.each<[string, TSchema, JsonObject]>([
    ['create', channelMethods['channel.create'].params, descriptor],
    ['update', channelMethods['channel.update'].params, descriptor],
    ['resolve, current', channelMethods['channel.resolve'].params, id],
    ['resolve, exact', channelMethods['channel.resolve'].params, { ...id, revision: 0 }],
    ['post', channelMethods['channel.post'].params, post()],
    ['edit', channelMethods['channel.post.edit'].params, edit({ body: null, attachments: null })],
    ['delete', channelMethods['channel.post.delete'].params, deletion()],
    ['subscribe to nothing', channelMethods['channel.subscribe'].params, { channel_ids: [] }],
    ['read, latest', read, id],
    ['read from creation', read, { ...id, after: -1, limit: 1 }],
    ['read older', read, { ...id, before: 0 }],
    ['the position of a post', channelMethods['channel.post'].result, { sequence: 1 }],
    [
      'a resolution',
      channelMethods['channel.resolve'].result,
      { descriptor, signer_certificate: owner.certificate },
    ],
    ['an empty page', page, { events: [], certificates: [], has_more: false }],
    [
      'a page',
      page,
      { events: [event(0, descriptor)], certificates: [owner.certificate], has_more: true },
    ],
  ])('%s passes', (_, schema, value) => {
    expect(accepts(schema, value)).toBeUndefined();
  });

  test.each<[string, TSchema, JsonObject]>([
    ['reading after -2', read, { ...id, after: -2 }],
    ['reading before -1', read, { ...id, before: -1 }],
    ['a limit of 0', read, { ...id, limit: 0 }],
    ['a limit above 2^53-1', read, { ...id, limit: 2 ** 53 }],
    ['a revision of -1', channelMethods['channel.resolve'].params, { ...id, revision: -1 }],
    ['a post at sequence 0', channelMethods['channel.post'].result, { sequence: 0 }],
    ['an ID in the set', channelMethods['channel.subscribe'].params, { channel_ids: ['chan_x'] }],
    ['an absent set', channelMethods['channel.subscribe'].params, {}],
  ])('%s is bad_request', (_, schema, value) => {
    expect(codeOf(() => accepts(schema, value))).toBe('bad_request');
  });

  test('01 §2.7: null is allowed in an edit alone, and not in what cannot be removed', () => {
    const allowing = Object.values(channelMethods).filter(
      (definition) => 'nullable' in definition || 'nullableUnknown' in definition,
    );
    expect(allowing).toEqual([channelMethods['channel.post.edit']]);
    const { nullable, nullableUnknown } = channelMethods['channel.post.edit'];
    expect([nullable, nullableUnknown]).toEqual([['body', 'attachments'], true]);
  });
});

test('06 §9.2: channel.timeline.changed carries the channel and its head', () => {
  const { params, name } = channelNotifications['channel.timeline.changed'];
  expect(name).toBe('channel.timeline.changed');
  expect(accepts(params, { channel_id: channelId, head: 7 })).toBeUndefined();
  expect(codeOf(() => accepts(params, { channel_id: channelId }))).toBe('bad_request');
});

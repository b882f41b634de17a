/** One valid call of every channel method, for the checks that all methods share. */
import type { channelMethods } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import {
  type ChannelFixture,
  type ChannelFixtureOptions,
  channelFixture,
} from './channel-fixture.ts';
import { attachment, textBody } from './channel-objects.ts';
import { TestChannel } from './test-channel.ts';

export type ChannelMethodName = keyof typeof channelMethods;

/** The input of a call: `target` is a post of the owner, if the method is about a post. */
interface CallInput {
  readonly channel: TestChannel;
  readonly by: TestAccount;
  readonly target: number;
}

interface CallTemplate {
  /** Whether the parameters are a signed object; `channel.close` signs another object. */
  readonly signed: boolean;
  /** The accounts that may call it. */
  readonly allowed: 'owner' | 'writers' | 'readers';
  /** Whether a closed channel refuses it. */
  readonly writes: boolean;
  /** Whether the method is about a post. */
  readonly targets?: true;
  /** The largest parameters, in bytes of Canonical JSON. */
  readonly bytes?: number;
  /** Changes of `malformed()` that leave the parameters valid. */
  readonly harmless?: RegExp;
  /** Builds well-formed parameters for any caller, permitted or not. */
  build(input: CallInput): JsonObject;
}

const descriptorBytes = 8_192;
const contentBytes = 65_536;
/**
 * Optional members, members with free text, and `$context` in members that are no protocol object
 * (01 K2).
 */
const harmless =
  /^((description|moderators|body|attachments|reason) omitted|(body\.text|reason) (padded|with|cut).*|attachments\.0\.uri (padded|cut).*|.*content_type (cut|with).*|\$context in (body|attachments).*)$/;
const full = { description: 'Public announcements' };
const namedChannel = ({ channelId: channel_id }: TestChannel) => ({ channel_id });

export const callTemplates: Readonly<Record<ChannelMethodName, CallTemplate>> = {
  'channel.create': {
    ...{ signed: true, allowed: 'readers', writes: false, bytes: descriptorBytes, harmless },
    build: ({ channel: { context, owner }, by }) => {
      const overrides = { ...full, moderators: [owner.account.id] };
      const others = by.account.id === owner.account.id ? full : overrides;
      return TestChannel.draft(context, by, others).createParams;
    },
  },
  'channel.resolve': {
    ...{ signed: false, allowed: 'readers', writes: false },
    build: ({ channel }) => namedChannel(channel),
  },
  'channel.update': {
    ...{ signed: true, allowed: 'owner', writes: true, bytes: descriptorBytes, harmless },
    build: ({ channel, by }) => channel.updateParams({ ...full, status: 'active' }, by),
  },
  'channel.close': {
    ...{ signed: false, allowed: 'owner', writes: true },
    build: ({ channel, by }) => channel.closeParams({}, by),
  },
  'channel.post': {
    ...{ signed: true, allowed: 'writers', writes: true, bytes: contentBytes, harmless },
    build: ({ channel, by }) => channel.postParams({ attachments: [attachment()] }, by),
  },
  'channel.post.edit': {
    ...{ signed: true, allowed: 'writers', writes: true, targets: true, bytes: contentBytes },
    // At the root of an edit, `null` removes a member (06 §6.2).
    harmless: new RegExp(`${harmless.source}|^(body|attachments) null$`),
    build: ({ channel, by, target }) => {
      const overrides = { body: textBody('Version 1.0.1 is out'), attachments: [attachment()] };
      return channel.editParams(target, overrides, by);
    },
  },
  'channel.post.delete': {
    ...{ signed: true, allowed: 'writers', writes: true, targets: true, bytes: contentBytes },
    harmless,
    build: ({ channel, by, target }) => channel.deleteParams(target, { reason: 'an error' }, by),
  },
  'channel.post.report': {
    ...{ signed: false, allowed: 'readers', writes: false, targets: true, harmless },
    build: ({ channel, target }) => channel.reportParams(target),
  },
  'channel.read': {
    ...{ signed: false, allowed: 'readers', writes: false },
    build: ({ channel }) => namedChannel(channel),
  },
  'channel.subscribe': {
    ...{ signed: false, allowed: 'readers', writes: false },
    build: ({ channel }) => ({ channel_ids: [channel.channelId] }),
  },
};

/** A channel in which one method is ready to be called by the owner. */
export interface PreparedCall {
  readonly fixture: ChannelFixture;
  readonly by: TestAccount;
  readonly params: JsonObject;
  /** Builds the call anew: signed by another account, or of another channel. */
  again(change?: { readonly by?: TestAccount; readonly channel?: TestChannel }): JsonObject;
}

/** Prepares a channel for a call of the method. */
export async function prepareCall(
  context: TestContext,
  method: ChannelMethodName,
  options: ChannelFixtureOptions = {},
): Promise<PreparedCall> {
  const { build, targets } = callTemplates[method];
  const fixture = await channelFixture(context, options);
  const { channel, owner } = fixture;
  const target = targets ? await channel.post() : 1;
  const again: PreparedCall['again'] = (change = {}) => {
    return build({ channel, by: owner, target, ...change });
  };
  return { fixture, by: owner, params: again(), again };
}

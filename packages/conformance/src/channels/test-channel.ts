/** A channel under test: calls its methods and follows its descriptor. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { ChannelObjects } from './channel-objects.ts';

/**
 * Calls the methods of one channel; by default the owner calls. The methods of
 * {@link ChannelObjects} make an object without sending it.
 *
 * @example
 * const channel = await TestChannel.create(context, ann);
 * const sequence = await channel.post({ body: textBody('hello') });
 * await channel.edit(sequence, { body: textBody('hello again') });
 */
export class TestChannel extends ChannelObjects {
  /** Makes a channel without creating it; `createParams` are the parameters that do. */
  static draft(context: TestContext, owner: TestAccount, overrides: JsonObject = {}): TestChannel {
    return new TestChannel(context, owner, overrides);
  }

  static async create(
    context: TestContext,
    owner: TestAccount,
    overrides: JsonObject = {},
  ): Promise<TestChannel> {
    const channel = TestChannel.draft(context, owner, overrides);
    await context.expectOk(owner.caller, 'channel.create', channel.createParams);
    context.atEnd(() => channel.close());
    return channel;
  }

  async update(overrides: JsonObject, by = this.owner): Promise<void> {
    await this.sendDescriptor(this.updateParams(overrides, by), by);
  }

  /** Sends a descriptor without changing it. */
  async sendDescriptor(descriptor: JsonObject, { caller } = this.owner): Promise<void> {
    await this.context.expectOk(caller, 'channel.update', descriptor);
    this.current = descriptor;
  }

  async close(by = this.owner): Promise<void> {
    const final = this.finalDescriptor({}, by);
    const { channel_id, revision, updated_at, device_signature } = final;
    const params = { channel_id, revision, updated_at, device_signature };
    await this.context.expectOk(by.caller, 'channel.close', params);
    this.current = final;
  }

  /** Publishes a post; returns its sequence. */
  async post(overrides: JsonObject = {}, by = this.owner): Promise<number> {
    return this.sendPost(this.postParams(overrides, by), by);
  }

  /** Sends a signed post; returns its sequence. */
  async sendPost(post: JsonObject, { caller } = this.owner): Promise<number> {
    const answer = (await this.context.expectOk(caller, 'channel.post', post)) as JsonObject;
    return Number(answer.sequence);
  }

  async edit(target: number, overrides: JsonObject, by = this.owner): Promise<void> {
    const params = this.editParams(target, overrides, by);
    await this.context.expectOk(by.caller, 'channel.post.edit', params);
  }

  async delete(target: number, overrides: JsonObject = {}, by = this.owner): Promise<void> {
    const params = this.deleteParams(target, overrides, by);
    await this.context.expectOk(by.caller, 'channel.post.delete', params);
  }

  async report(target: number, by: TestAccount, overrides: JsonObject = {}): Promise<void> {
    const params = this.reportParams(target, overrides);
    await this.context.expectOk(by.caller, 'channel.post.report', params);
  }
}

/** The people of a channel and what they do. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { ChannelObjects } from './channel-objects.ts';

/**
 * Calls the methods of one channel and keeps what follows. Who acts is the owner unless said
 * otherwise. The methods of {@link ChannelObjects} make an object without sending it.
 *
 * @example
 * const channel = await TestChannel.create(context, ann);
 * const sequence = await channel.post({ body: textBody('hello') });
 * await channel.edit(sequence, { body: textBody('hello again') });
 */
export class TestChannel extends ChannelObjects {
  /** A channel that is not created yet: `creation` are the parameters that do it. */
  static draft(context: TestContext, owner: TestAccount, facts: JsonObject = {}): TestChannel {
    return new TestChannel(context, owner, facts);
  }

  static async create(
    context: TestContext,
    owner: TestAccount,
    facts: JsonObject = {},
  ): Promise<TestChannel> {
    const channel = TestChannel.draft(context, owner, facts);
    await context.expectOk(owner.caller, 'channel.create', channel.createParams);
    return channel;
  }

  async update(facts: JsonObject, by = this.owner): Promise<void> {
    await this.sendDescriptor(this.updateParams(facts, by), by);
  }

  /** Sends a descriptor as it is. */
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

  /** Publishes; says the sequence. */
  async post(facts: JsonObject = {}, by = this.owner): Promise<number> {
    return this.sendPost(this.postParams(facts, by), by);
  }

  /** Sends a post as it is; says the sequence. */
  async sendPost(post: JsonObject, { caller } = this.owner): Promise<number> {
    const answer = (await this.context.expectOk(caller, 'channel.post', post)) as JsonObject;
    return Number(answer.sequence);
  }

  async edit(target: number, facts: JsonObject, by = this.owner): Promise<void> {
    const params = this.editParams(target, facts, by);
    await this.context.expectOk(by.caller, 'channel.post.edit', params);
  }

  async delete(target: number, facts: JsonObject = {}, by = this.owner): Promise<void> {
    const params = this.deleteParams(target, facts, by);
    await this.context.expectOk(by.caller, 'channel.post.delete', params);
  }

  async report(target: number, by: TestAccount, facts: JsonObject = {}): Promise<void> {
    const params = this.reportParams(target, facts);
    await this.context.expectOk(by.caller, 'channel.post.report', params);
  }
}

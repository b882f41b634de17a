/** The people of a channel and what they do. */
import type { JsonObject } from '@posthouse/protocol';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { ChannelPapers } from './channel-objects.ts';

/**
 * Calls the methods of one channel and keeps what follows. Who acts is the owner unless said
 * otherwise. The methods of {@link ChannelPapers} make an object without sending it.
 *
 * @example
 * const channel = await ChannelActors.found(stage, ann);
 * const sequence = await channel.post({ body: textBody('hello') });
 * await channel.edit(sequence, { body: textBody('hello again') });
 */
export class ChannelActors extends ChannelPapers {
  /** A channel that is not created yet: `creation` are the parameters that do it. */
  static draft(stage: Stage, owner: Resident, facts: JsonObject = {}): ChannelActors {
    return new ChannelActors(stage, owner, facts);
  }

  static async found(
    stage: Stage,
    owner: Resident,
    facts: JsonObject = {},
  ): Promise<ChannelActors> {
    const channel = ChannelActors.draft(stage, owner, facts);
    await stage.succeed(owner.caller, 'channel.create', channel.creation);
    return channel;
  }

  async update(facts: JsonObject, by = this.owner): Promise<void> {
    await this.adopt(this.revised(facts, by), by);
  }

  /** Sends a descriptor as it is. */
  async adopt(descriptor: JsonObject, { caller } = this.owner): Promise<void> {
    await this.stage.succeed(caller, 'channel.update', descriptor);
    this.current = descriptor;
  }

  async close(by = this.owner): Promise<void> {
    const final = this.final({}, by);
    const { channel_id, revision, updated_at, device_signature } = final;
    const params = { channel_id, revision, updated_at, device_signature };
    await this.stage.succeed(by.caller, 'channel.close', params);
    this.current = final;
  }

  /** Publishes; says the sequence. */
  async post(facts: JsonObject = {}, by = this.owner): Promise<number> {
    return this.publish(this.publication(facts, by), by);
  }

  /** Sends a post as it is; says the sequence. */
  async publish(post: JsonObject, { caller } = this.owner): Promise<number> {
    const answer = (await this.stage.succeed(caller, 'channel.post', post)) as JsonObject;
    return Number(answer.sequence);
  }

  async edit(target: number, facts: JsonObject, by = this.owner): Promise<void> {
    const params = this.patch(target, facts, by);
    await this.stage.succeed(by.caller, 'channel.post.edit', params);
  }

  async delete(target: number, facts: JsonObject = {}, by = this.owner): Promise<void> {
    const params = this.deletion(target, facts, by);
    await this.stage.succeed(by.caller, 'channel.post.delete', params);
  }

  async report(target: number, by: Resident, facts: JsonObject = {}): Promise<void> {
    const params = this.complaint(target, facts);
    await this.stage.succeed(by.caller, 'channel.post.report', params);
  }
}

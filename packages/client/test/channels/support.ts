/** What tests of channels share. */
import type { Account, ChannelPostEntry } from '../../src/index.ts';

export function textOf({ content }: ChannelPostEntry): string {
  return content.body?.text ?? '';
}

/** Texts of the posts of a channel, as a device has them. */
export async function postTexts(account: Account, channelId: string): Promise<string[]> {
  return (await account.channels.posts(channelId)).map(textOf);
}

/** Kinds of what a device has of a timeline, with where each stands. */
export async function places(account: Account, channelId: string): Promise<string[]> {
  const entries = await account.channels.entries(channelId);
  return entries.map((entry) =>
    entry.kind === 'gap'
      ? `gap ${entry.sequence}-${entry.through}`
      : `${entry.kind} ${entry.sequence}`,
  );
}

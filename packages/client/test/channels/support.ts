/** Helpers for tests of channels. */
import type { Account, ChannelPostEntry } from '../../src/index.ts';

export function textOf({ body }: ChannelPostEntry): string {
  return body?.text ?? '';
}

/** Lists the texts of a channel's posts on one device. */
export async function postTexts(account: Account, channelId: string): Promise<string[]> {
  return (await account.channels.listPosts(channelId)).map(textOf);
}

/** Lists the kinds and sequences of a channel's entries on one device. */
export async function places(account: Account, channelId: string): Promise<string[]> {
  const entries = await account.channels.listEntries(channelId);
  return entries.map((entry) =>
    entry.kind === 'gap'
      ? `gap ${entry.sequence}-${entry.through}`
      : `${entry.kind} ${entry.sequence}`,
  );
}

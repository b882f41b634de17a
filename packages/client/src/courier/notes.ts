import type { AccountEvent } from '../events.ts';
import { channelNote } from './channels.ts';
import { groupNote } from './groups.ts';
import { behind, printable } from './output.ts';

/** What a person should be told of groups, channels and hosts, whatever the command is about. */
export function hostedNote(event: AccountEvent): string | undefined {
  let note: string | undefined;
  if (event.kind === 'behind') note = `${event.relayId}: ${behind}`;
  if ('group_id' in event) note = groupNote(event);
  if ('channel_id' in event) note = channelNote(event);
  return note === undefined ? undefined : printable(note);
}

/** The command that moves the account to another home relay (03 §12). */
import type { Command } from 'commander';
import type { MoveProgress } from '../../accounts/move-home.ts';
import type { MoveStep } from '../../accounts/move-rows.ts';
import type { MovePreview } from '../../accounts/preview-move.ts';
import type { UnfinishedMove } from '../../api/home.ts';
import { givenSigner, type KeyOptions, withKey } from '../account-key.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { columns, localTime, oneLine } from '../output.ts';
import { type GlobalOptions, networkOf } from '../settings.ts';
import { onAccount, withOptions } from './context.ts';
import { relayIdOf } from './setup.ts';

interface MoveOptions extends GlobalOptions, KeyOptions {
  readonly to?: string;
  readonly dryRun?: boolean;
  readonly status?: boolean;
  readonly cancel?: boolean;
  readonly replace?: boolean;
  readonly invite?: string;
}

/** What each step does, as the command prints it. */
const stepTexts: Readonly<Record<MoveStep, string>> = {
  'last-sync': 'reading the old relay once more',
  stage: 'storing the devices at the new relay',
  'sign-route': 'signing the new route',
  publish: 'publishing the route',
  profile: 'publishing the profile',
  'first-sync': 'reading and sending at the new relay',
  replicate: 'having the route stored by other relays',
};

export function moveCommand(base: Command, environment: CliEnvironment): Command {
  const command = withKey(withOptions(base))
    .option('--to <relay>', 'relay ID, or the URL of a relay in the registry')
    .option('--dry-run', 'only show what would move, and what stands against it')
    .option('--status', 'show the move that is not finished')
    .option('--cancel', 'give up a move whose route was not sent yet')
    .option(
      '--replace',
      'give up an unfinished move for one to this relay, which may be the old one',
    )
    .option('--invite <code>', 'invite code of the new relay, if it asks for one');
  return onAccount<MoveOptions>(command, environment, async (session, { options }) => {
    const { to, dryRun = false, status = false, cancel = false } = options;
    if ([dryRun, status, cancel].filter(Boolean).length > 1) {
      throw new UsageError('give only one of --dry-run, --status and --cancel');
    }
    if (status) return await showStatus(session);
    if (cancel) return await cancelMove(session);
    const relayId = to === undefined ? await unfinishedTarget(session) : await target(session, to);
    if (dryRun) return await showPreview(session, relayId);
    return await move(session, relayId, options);
  });
}

async function target({ settings }: AccountSession, to: string): Promise<string> {
  return (await relayIdOf(settings, to, '--to')) ?? '';
}

/** Without `--to` the unfinished move goes on. */
async function unfinishedTarget({ account }: AccountSession): Promise<string> {
  const begun = await account.home.unfinishedMove();
  if (begun === undefined) {
    throw new UsageError('no move is unfinished: name the new relay with --to');
  }
  return begun.to;
}

async function move(
  { account, environment, out, settings, signal }: AccountSession,
  relayId: string,
  { replace = false, invite: inviteCode, ...wallet }: MoveOptions,
): Promise<void> {
  const accountKey = await givenSigner(networkOf(settings), wallet, environment);
  const progress = ({ step, number, of }: MoveProgress) => {
    out.note(`${number}/${of} ${stepTexts[step]}`);
  };
  try {
    await account.home.move(relayId, { accountKey, replace, inviteCode, progress, signal });
  } catch (error) {
    const left = await account.home.unfinishedMove();
    if (left !== undefined) out.note(`not finished: ${cureOf(left)}`);
    throw error;
  }
  const homeRelay = await account.home.relayId();
  out.result({ relay: homeRelay }, () => [`the home relay is ${homeRelay}`]);
}

function cureOf({ to, canCancel }: UnfinishedMove): string {
  const again = `run courier move --to ${to} again`;
  return `${again}, or ${canCancel ? 'courier move --cancel' : 'name another relay with --replace'}`;
}

async function showStatus({ account, out }: AccountSession): Promise<void> {
  const homeRelay = await account.home.relayId();
  const begun = await account.home.unfinishedMove();
  const shape =
    begun === undefined
      ? null
      : {
          from: begun.from,
          to: begun.to,
          started_at: Math.floor(begun.startedAt / 1_000),
          step: begun.step,
          can_cancel: begun.canCancel,
        };
  out.result({ relay: homeRelay, move: shape }, () => {
    if (begun === undefined) return [`no move is unfinished; the home relay is ${homeRelay}`];
    return columns([
      ['from', begun.from],
      ['to', begun.to],
      ['begun', localTime(Math.floor(begun.startedAt / 1_000))],
      ['next step', stepTexts[begun.step]],
      ['to go on', cureOf(begun)],
    ]);
  });
}

async function cancelMove({ account, out }: AccountSession): Promise<void> {
  await account.home.cancelMove();
  const homeRelay = await account.home.relayId();
  out.result({ relay: homeRelay }, () => [`cancelled; the home relay is still ${homeRelay}`]);
}

async function showPreview(
  { account, out, signal }: AccountSession,
  relayId: string,
): Promise<void> {
  const preview = await account.home.preview(relayId, { signal });
  out.result(previewShape(preview), () => previewLines(preview));
}

function previewShape({ from, to, moves, outbox, oldMessageRetention, problems }: MovePreview) {
  return {
    from: { relay: from.relayId, answers: from.answers, message_retention: oldMessageRetention },
    to: {
      relay: to.relayId,
      name: to.name,
      capabilities: to.capabilities,
      message_retention: to.messageRetention,
      clock_ahead: to.clockAhead,
    },
    moves: { devices: moves.devices, contacts: moves.contacts, profile: moves.profile },
    outbox,
    problems,
  };
}

function previewLines(preview: MovePreview): string[] {
  const { from, to, moves, outbox, oldMessageRetention, problems } = preview;
  const days = (seconds: number) => `${Math.floor(seconds / 86_400)} days`;
  const devices = `${moves.devices} ${moves.devices === 1 ? 'device' : 'devices'}`;
  const isKept = oldMessageRetention === undefined ? '' : `, kept for ${days(oldMessageRetention)}`;
  return [
    ...columns([
      ['from', from.relayId],
      ['to', `${to.relayId} ${oneLine(to.name)}`],
      ['moves', `${devices}${moves.profile ? ', the profile' : ''}`],
      ['stays valid', `${moves.contacts} contacts, groups and channels at their hosts`],
      ['is not copied', `messages at the old relay${isKept}`],
      ['new messages', `kept for ${days(to.messageRetention)} at the new relay`],
      ['on its way', `${outbox} messages, which the old relay delivers`],
    ]),
    ...(problems.length === 0 ? ['nothing stands against the move'] : problems),
  ];
}

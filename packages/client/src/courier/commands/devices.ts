import { deriveDeviceId } from '@posthouse/protocol';
import type { Command } from 'commander';
import { parseDeviceApproval, parseDeviceRequest } from '../../accounts/device-pairing.ts';
import type { DeviceInfo } from '../../accounts/devices.ts';
import { ClientError } from '../../errors.ts';
import { type KeyOptions as GivenKey, givenSigner, withKey } from '../account-key.ts';
import { type CliEnvironment, withClient } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { deviceShape } from '../json-shapes.ts';
import { accountOf } from '../names.ts';
import { columns, localTime } from '../output.ts';
import {
  contextOfRegistry,
  type GlobalOptions,
  mergedSettings,
  networkOf,
  readSettings,
  readText,
  type Settings,
  writePrivate,
  writeSettings,
} from '../settings.ts';
import { onAccount, onAction, several, subcommand, withVerbs } from './context.ts';

type KeyOptions = GivenKey & GlobalOptions;

/** Adds all its verbs to `courier devices`. */
export function devicesCommand(base: Command, environment: CliEnvironment): Command {
  const verbs = [
    listCommand,
    requestCommand,
    approveCommand,
    completeCommand,
    handOverCommand,
    renewCommand,
    removeCommand,
  ];
  return withVerbs(
    base,
    verbs.map((make) => make(environment)),
  );
}

function listCommand(environment: CliEnvironment): Command {
  const command = subcommand('list', 'the devices of the account');
  return onAccount(command, environment, async ({ account, out, signal }) => {
    const devices = await account.devices.list({ signal });
    out.result({ devices: devices.map(deviceShape) }, () =>
      columns(
        devices.map((device) => [
          device.deviceId,
          device.isValidNow ? 'valid' : 'not valid',
          `until ${localTime(device.expiresAt)}`,
          device.isThisDevice ? 'this device' : historyWords(device),
        ]),
      ),
    );
    const fresh = devices.find((each) => !each.isThisDevice && each.isValidNow && !each.history);
    if (fresh !== undefined) {
      out.note('to hand the messages of this device to another one:');
      out.note(`  courier devices hand-over ${fresh.deviceId}`);
    }
  });
}

function historyWords({ history }: DeviceInfo): string {
  if (history === 'handed-over') return 'has the messages of this device';
  return history === undefined ? '' : 'is being handed messages';
}

interface HandOverFlags extends GlobalOptions {
  readonly with?: readonly string[];
  readonly days?: string;
}

function handOverCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'hand-over <device>',
    'hand the messages that this device stores to another device',
  )
    .option('--with <contact>', 'only the conversation with a contact (repeatable)', several)
    .option('--days <number>', 'only messages of so many days');
  return onAccount<HandOverFlags>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const [device = ''] = args;
      const days = Number(options.days ?? '1');
      if (!Number.isInteger(days) || days < 1) throw new UsageError('--days: give a whole number');
      const since = Math.floor(Date.now() / 1_000) - days * 86_400;
      const peers = await Promise.all((options.with ?? []).map((name) => accountOf(account, name)));
      const conversations = peers.map((id) => ({ kind: 'person', id }) as const);
      const { sent, skipped, total, isComplete, error } = await account.devices.handOver(device, {
        ...(options.days !== undefined && { since }),
        ...(conversations.length > 0 && { conversations }),
        progress: ({ sent, total }) => out.note(`${sent} of ${total}`),
        signal,
      });
      // A hand-over that was given up is not continued.
      if (error !== undefined)
        throw Object.assign(new ClientError(error.code, error.message), error);
      out.result({ device, sent, skipped, total, complete: isComplete }, () => [
        `handed ${sent} messages to ${device}; it stores them when it synchronizes`,
        ...(isComplete ? [] : [`the rest of ${total} follows tomorrow: run \`courier sync\` then`]),
      ]);
    },
  );
}

interface RequestOptions extends GlobalOptions {
  readonly accountKey: string;
  readonly out?: string;
}

/** Runs on the new device: writes settings and keys to its folder; `complete` adds the account. */
function requestCommand(environment: CliEnvironment): Command {
  const command = subcommand('request', 'on a new device: make a request to join an account')
    .requiredOption('--account-key <public key>', 'as `courier whoami` prints it')
    .option('--out <file>', 'write the request there instead of printing it');
  return onAction<RequestOptions>(command, environment, async ({ options, out, folder }) => {
    const settings = newSettings(folder, options);
    const context = { folder, out, environment };
    await withClient(settings, context, async ({ client }) => {
      const request = await client.requestDevice(options.accountKey);
      writeSettings(folder, settings);
      const text = `${JSON.stringify(request, undefined, 2)}\n`;
      const device = deriveDeviceId(networkOf(settings), request.certificate);
      if (options.out !== undefined) writePrivate(options.out, text);
      const printed = options.out === undefined ? text.trimEnd() : `wrote ${options.out}`;
      out.result({ device, request }, () => [printed]);
      out.note(`This device is ${device}. Compare it where you approve the request:`);
      out.note('  courier devices approve FILE --out APPROVAL');
    });
  });
}

function newSettings(folder: string, options: GlobalOptions): Settings {
  const { network, service = 'svc', registry, ca } = mergedSettings(readSettings(folder), options);
  if (registry === undefined)
    throw new UsageError('a new device needs --registry FILE or --registry-node URL');
  const context = network ?? contextOfRegistry(registry);
  return { network: context, service, registry, ...(ca !== undefined && { ca }) };
}

function approveCommand(environment: CliEnvironment): Command {
  const command = withKey(
    subcommand(
      'approve <file>',
      'on a device with the account key: approve the request of a new device',
    ),
  )
    .option('--device <id>', 'approve only a request from this device')
    .option('--out <file>', 'write the approval there instead of printing it');
  return onAccount<KeyOptions & { device?: string; out?: string }>(
    command,
    environment,
    async ({ account, out, settings, signal }, { options, args }) => {
      const network = networkOf(settings);
      const request = await parseDeviceRequest(network, readText(args[0] ?? ''));
      const device = deriveDeviceId(network, request.certificate);
      if (options.device !== undefined && options.device !== device) {
        throw new UsageError(`the request is from ${device}: compare the device IDs again`);
      }
      const accountKey = await givenSigner(network, options, environment);
      const approval = await account.devices.approve(request, { accountKey, signal });
      await account.sync({ signal });
      const text = `${JSON.stringify(approval, undefined, 2)}\n`;
      if (options.out !== undefined) writePrivate(options.out, text);
      const printed = options.out === undefined ? text.trimEnd() : `wrote ${options.out}`;
      out.result({ device, approval }, () => [printed]);
      out.note(`${device} is a device of the account now. On that device, run:`);
      out.note(`  courier devices complete APPROVAL --account-key ${account.publicKey}`);
    },
  );
}

function completeCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'complete <file>',
    'on the new device: read the approval and join',
  ).requiredOption('--account-key <public key>', 'the same key as in the request');
  return onAction<RequestOptions>(command, environment, async ({ options, args, out, folder }) => {
    const settings = newSettings(folder, options);
    const context = { folder, out, environment };
    await withClient(settings, context, async ({ client, signal }) => {
      const approval = await parseDeviceApproval(networkOf(settings), readText(args[0] ?? ''));
      const account = await client.completeDevice(approval, {
        accountPublicKey: options.accountKey,
        signal,
      });
      await account.sync({ signal });
      out.result({ account: account.id, device: account.deviceId }, () => [
        `${account.deviceId} is a device of ${account.id}`,
      ]);
      out.note(
        'Contacts, groups, followed channels and what was read come from the other devices,',
      );
      out.note('when they synchronize. Their messages come when you run there:');
      out.note(`  courier devices hand-over ${account.deviceId}`);
    });
  });
}

function renewCommand(environment: CliEnvironment): Command {
  const command = withKey(subcommand('renew', 'extend the validity of this device'));
  return onAccount<KeyOptions>(
    command,
    environment,
    async ({ account, out, settings, signal }, { options }) => {
      const accountKey = await givenSigner(networkOf(settings), options, environment);
      await account.devices.renew({ accountKey, signal });
      const devices = await account.devices.list({ signal });
      const renewed = devices.find(({ isThisDevice }) => isThisDevice);
      if (renewed === undefined)
        throw new UsageError('the account has no such device any more: set this device up again');
      await account.sync({ signal });
      out.result(deviceShape(renewed), () => [`valid until ${localTime(renewed.expiresAt)}`]);
    },
  );
}

function removeCommand(environment: CliEnvironment): Command {
  const command = withKey(subcommand('remove <device>', 'remove a device')).option(
    '--force',
    'remove it at once, even if contacts could not be notified first; needed for this device',
  );
  return onAccount<KeyOptions & { force?: boolean }>(
    command,
    environment,
    async ({ account, out, settings, signal }, { options, args }) => {
      const [device = ''] = args;
      const { force = false } = options;
      const isThisDevice = device === account.deviceId;
      if (isThisDevice && !force) {
        const { outbox } = await account.status();
        throw new UsageError(
          'that is this device: this folder cannot be used any more afterwards. ' +
            `${outbox} messages or writes that wait here are never sent, a stored account key is ` +
            'lost with the folder (courier key export saves it), and contacts write to the account ' +
            'only if another device has synchronized with them. Add --force to remove it',
        );
      }
      const accountKey = await givenSigner(networkOf(settings), options, environment);
      await account.devices.remove(device, { accountKey, force, signal });
      if (!isThisDevice) await account.sync({ signal });
      out.result({ device, removed: true }, () => [
        `${device} is no longer a device of the account`,
      ]);
    },
  );
}

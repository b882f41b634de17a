import {
  canonicalJson,
  type GroupMethodName,
  isJsonObject,
  type JsonObject,
  limits,
  methods,
} from '@posthouse/protocol';
import { type Check, checksOf } from '../../check.ts';
import { malformed, malformedQueries } from '../../fixtures/malformed.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { readyFor, recipes, resigned } from '../../groups/group-calls.ts';
import type { Scene } from '../../groups/group-fixture.ts';
import { readHead } from '../../groups/group-reader.ts';

/** The checks that one method shares with the others. */
function commonChecks(method: GroupMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, writes, chained } = recipes[method];
  const transports =
    method === 'group.subscribe' ? (['wss'] as const) : (['https', 'wss'] as const);
  const inQuery = (methods[method].http as readonly string[]).includes('GET');

  check(
    'session',
    {
      source: '05 §12.1, §12.4',
      title: 'asks for a device session: unauthorized without, forbidden with the account key',
      transports,
    },
    async (stage) => {
      const { by, params } = await readyFor(stage, method);
      await stage.fail(await stage.visitor(), { method, params }, 'unauthorized');
      const keyHolder = await stage.keyHolder(by.account);
      await stage.fail(keyHolder, { method, params }, 'forbidden');
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'form',
    {
      source: '05 §4, §12.4',
      title: 'refuses every malformed member with bad_request and keeps nothing of it',
      transports,
    },
    async (stage) => {
      const { scene, by, params } = await readyFor(stage, method);
      if (inQuery && stage.transport === 'https') {
        await refusesAll({ by, method, codes: ['bad_request'] }, malformedQueries(params));
      } else {
        const calls = malformedCalls({ scene, by, params }, method);
        await refusesAll({ by, method, codes: ['bad_request'] }, calls);
      }
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'extension',
    {
      source: '05 §3.1, 02 §2.5',
      title: 'tolerates members it does not know',
      transports: inQuery ? ['wss'] : transports,
    },
    async (stage) => {
      const { scene, by, params } = await readyFor(stage, method);
      const future = { some: ['thing', { of: 1 }], $type: 'unknown' };
      const extended = resigned({ scene, by }, { params, signed }, (part) => ({ ...part, future }));
      await stage.succeed(by.caller, method, extended);
    },
  );

  if (signed !== 'none') {
    check(
      'signature',
      {
        source: '05 §3.1, §12.4',
        title: 'refuses a signature that is altered, or of any other device, as invalid_signature',
      },
      async (stage) => {
        const { scene, by, params, again } = await readyFor(stage, method, { devices: 2 });
        const part = (signed === 'all' ? params : params[signed]) as JsonObject;
        const put = (value: JsonObject) =>
          signed === 'all' ? value : { ...params, [signed]: value };
        const other = await scene.stage.account().device();
        const wrong = {
          'bit flipped': put({ ...part, device_signature: flipped(String(part.device_signature)) }),
          'member added': put({ ...part, added: 1 }),
          "the account's other device": put(scene.group.sign(part, at(by, 1))),
          'another account': put(scene.group.sign(part, { device: other })),
        };
        const refused = { by, method, codes: ['invalid_signature'] } as const;
        await refusesAll(refused, Object.entries(wrong));
        await stage.succeed(by.caller, method, again());
      },
    );
  }

  if (writes) {
    check(
      'size',
      {
        source: '05 §12.2',
        title: 'takes parameters of 1 MiB of Canonical JSON, serves them, and refuses more',
        transports: ['https'],
      },
      async (stage) => {
        const { scene, by, params } = await readyFor(stage, method);
        const filled = (bytes: number) =>
          resigned({ scene, by }, { params, signed }, (part) => ({
            ...part,
            filling: 'x'.repeat(bytes),
          }));
        const large = limits.groupWriteBytes + 1 - canonicalJson(filled(0)).length;
        const call = { method, params: filled(large) };
        await stage.fail(by.caller, call, 'request_too_large');
        if (method === 'group.message.send') return;
        await stage.succeed(by.caller, method, filled(large - 1));
        // Reading a closed group is not guaranteed.
        if (chained && method !== 'group.close') await readHead(scene.group, scene.owner);
      },
    );
  }

  return list;
}

/** What a signature could not be made of: Canonical JSON has no fractions. */
const unsigned = /signature|context|fraction/;

/** The malformed copies of a call, those of its signed part signed as they are. */
function* malformedCalls(
  {
    scene,
    by,
    params,
  }: { readonly scene: Scene; readonly by: Resident; readonly params: JsonObject },
  method: GroupMethodName,
): Generator<readonly [string, JsonObject]> {
  const { signed } = recipes[method];
  for (const [what, broken] of malformed(params)) {
    const part = signed === 'all' ? broken : broken[signed];
    const sign = isJsonObject(part) && !unsigned.test(what);
    if (signed === 'none' || !sign) yield [what, broken];
    else yield [what, resigned({ scene, by }, { params: broken, signed }, (same) => same)];
  }
}

export const groupCommonChecks = (Object.keys(recipes) as GroupMethodName[]).flatMap(commonChecks);

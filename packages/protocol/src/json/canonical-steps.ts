import { canonicalJson } from './canonical.ts';
import { factsOf } from './facts.ts';
import { type PreparedMember, preparedMembers, preparedTexts } from './prepared.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './types.ts';

/** UTF-16 units of text that one step makes, about. */
const stepLength = 4_096;
/** Names that one step sorts, or merges. */
const stepNames = 512;

/**
 * Formats a large value that `parseJsonInSteps` parsed, in steps: after each, the caller may do other
 * work. `canonicalJson` and `canonicalWith` of the value, and of its members, are fast afterwards.
 * Does nothing for a smaller value.
 *
 * @example
 * const list = ['a', 'b'];
 * const steps = prepareCanonicalJson(list);
 * while (steps.next().done !== true) console.log('other work');
 * canonicalJson(list); // '["a","b"]'
 */
export function* prepareCanonicalJson(value: JsonValue | undefined): Generator<undefined, void> {
  if (factsOf(value) !== undefined) yield* prepare(value as JsonValue, 1);
}

type TextSteps = Generator<undefined, string, undefined>;

/** @param depth down to which texts are kept; deeper ones are parts of those */
function* prepare(value: JsonValue, depth: number): TextSteps {
  // Smaller ones take less than a step.
  if (factsOf(value) === undefined) return canonicalJson(value);
  const text = isJsonObject(value)
    ? yield* objectText(value, depth)
    : yield* arrayText(value as readonly JsonValue[], depth);
  if (depth >= 0) preparedTexts.set(value as object, text);
  return text;
}

function* arrayText(items: readonly JsonValue[], depth: number): TextSteps {
  let text = '[';
  let stepEnd = stepLength;
  for (const [index, item] of items.entries()) {
    if (index > 0) text += ',';
    text += yield* prepare(item, depth - 1);
    if (text.length < stepEnd) continue;
    stepEnd = text.length + stepLength;
    yield;
  }
  return `${text}]`;
}

function* objectText(object: JsonObject, depth: number): TextSteps {
  const members: PreparedMember[] = [];
  let text = '';
  let stepEnd = stepLength;
  for (const name of yield* sortInSteps(Object.keys(object))) {
    const memberText = yield* prepare(object[name] as JsonValue, depth - 1);
    if (depth >= 0) members.push([name, memberText]);
    text += `${text === '' ? '' : ','}${canonicalJson(name)}:${memberText}`;
    if (text.length < stepEnd) continue;
    stepEnd = text.length + stepLength;
    yield;
  }
  if (depth >= 0) preparedMembers.set(object, members);
  return `{${text}}`;
}

/** Sorts by UTF-16 code units, as `sort` does. */
function* sortInSteps(names: string[]): Generator<undefined, readonly string[], undefined> {
  let runs: string[][] = [];
  for (let start = 0; start < names.length; start += stepNames) {
    if (start > 0) yield;
    runs.push(names.slice(start, start + stepNames).sort());
  }
  while (runs.length > 1) {
    const merged: string[][] = [];
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(yield* mergeInSteps(runs[index] ?? [], runs[index + 1] ?? []));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeInSteps(
  a: readonly string[],
  b: readonly string[],
): Generator<undefined, string[], undefined> {
  const merged: string[] = [];
  let [fromA, fromB] = [0, 0];
  while (fromA < a.length || fromB < b.length) {
    const [nextA, nextB] = [a[fromA], b[fromB]];
    if (nextB === undefined || (nextA !== undefined && nextA <= nextB)) {
      merged.push(nextA as string);
      fromA += 1;
    } else {
      merged.push(nextB);
      fromB += 1;
    }
    if (merged.length % stepNames === 0) yield;
  }
  return merged;
}

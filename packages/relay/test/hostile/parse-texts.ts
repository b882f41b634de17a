/** Compares the parsers of the protocol and of the relay with the oracle of `strict-json.ts`. */
import { canonicalJson, decodeUtf8, JsonError, parseJson } from '@posthouse/protocol/json';
import { readEnvelope } from '../../src/dispatch/envelope.ts';
import { Chance } from './chance.ts';
import { canonicalForm, isSame, judgeRequest, readStrictly } from './strict-json.ts';
import { hostileText } from './texts.ts';

/** What came of a text; counted for the report. */
export type TextVerdict = 'accepted' | 'not JSON' | 'breaks a rule';

/**
 * Checks one text.
 * @throws Error that names the difference
 */
export function compareText(bytes: Uint8Array): TextVerdict {
  const reading = readStrictly(bytes);
  const isRight = reading.isJson && reading.faults.length === 0;
  const ours = parsed(bytes);
  if (ours.isAccepted !== isRight) throw new Error(`accepted: ${ours.isAccepted}, not ${isRight}`);
  if (ours.isAccepted && reading.value !== undefined) {
    if (!isSame(reading.value, ours.value)) throw new Error('another value');
    if (canonicalJson(ours.value) !== canonicalForm(reading.value)) {
      throw new Error('another canonical form');
    }
  }
  compareAnswer(bytes, reading);
  if (isRight) return 'accepted';
  return reading.isJson ? 'breaks a rule' : 'not JSON';
}

function parsed(bytes: Uint8Array) {
  try {
    return { isAccepted: true, value: parseJson(decodeUtf8(bytes)) } as const;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { isAccepted: false } as const;
  }
}

/** Compares what a client WebSocket answers. */
function compareAnswer(bytes: Uint8Array, reading: ReturnType<typeof readStrictly>): void {
  const deserved = judgeRequest(reading);
  const envelope = readEnvelope(bytes);
  const answer = envelope.kind === 'refused' ? JSON.parse(envelope.answer) : undefined;
  const given = answer && { code: answer.error.code, id: answer.id };
  if (given?.code === deserved?.code && given?.id === deserved?.id) return;
  throw new Error(`answers ${JSON.stringify(given)}, not ${JSON.stringify(deserved)}`);
}

/**
 * Checks many texts.
 * @throws Error with the seed, the number and the bytes of the text that fails
 */
export function compareTexts(
  { seed, from, to }: { readonly seed: number; readonly from: number; readonly to: number },
  verdicts: Map<TextVerdict, number>,
): void {
  for (let input = from; input < to; input += 1) {
    const bytes = hostileText(new Chance(seed, input));
    try {
      const verdict = compareText(bytes);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    } catch (error) {
      const shown = bytes.length > 2_000 ? `${bytes.length} bytes` : bytes.toString('base64');
      throw new Error(`seed ${seed}, text ${input}: ${(error as Error).message}: ${shown}`, {
        cause: error,
      });
    }
  }
}

// CloudFront Function, event type viewer-request: reduces the Accept header to
// one of four values, so that browsers that differ only in what else they take
// share one cached image. Without it CloudFront compares the header as text, and
// nearly every kind of browser would fill the cache for itself.
//
// A format counts only when it is named by itself with a quality above 0, which
// is how karui reads the header too: "*/*" and "image/*" name nothing.
//
// Written in ECMAScript 5.1, for the runtimes cloudfront-js-1.0 and 2.0.

// With two formats there are four values. A site that offers HEIC instead of
// AVIF names it here; each further format doubles the number of cached copies.
var FORMATS = ['image/avif', 'image/webp'];

// What a viewer gets that names neither. The value itself is never looked at.
var NEITHER = '*/*';

// A longer header names neither: the work stays bounded. Browsers send under 200
// characters.
var LONGEST = 4096;

function handler(event) {
    var request = event.request;
    request.headers.accept = { value: normalised(request.headers.accept) };
    return request;
}

function normalised(header) {
    if (!header) {
        return NEITHER;
    }
    var values = header.multiValue || [header];
    var text = '';
    for (var i = 0; i < values.length; i++) {
        text += (i > 0 ? ',' : '') + values[i].value;
    }
    if (text.length > LONGEST) {
        return NEITHER;
    }
    var named = {};
    var refused = {};
    var members = split(text, ',');
    for (var m = 0; m < members.length; m++) {
        var parts = split(members[m], ';');
        var type = trim(parts[0]).toLowerCase();
        if (FORMATS.indexOf(type) >= 0) {
            (acceptable(parts) ? named : refused)[type] = true;
        }
    }
    var accepted = [];
    for (var f = 0; f < FORMATS.length; f++) {
        if (named[FORMATS[f]] && !refused[FORMATS[f]]) {
            accepted.push(FORMATS[f]);
        }
    }
    return accepted.length > 0 ? accepted.join(',') : NEITHER;
}

// split cuts at a separator that stands outside of quoted strings.
function split(text, separator) {
    if (text.indexOf('"') < 0) {
        return text.split(separator);
    }
    var parts = [];
    var begin = 0;
    var quoted = false;
    for (var i = 0; i < text.length; i++) {
        var c = text.charAt(i);
        if (quoted && c === '\\') {
            i++;
        } else if (c === '"') {
            quoted = !quoted;
        } else if (!quoted && c === separator) {
            parts.push(text.slice(begin, i));
            begin = i + 1;
        }
    }
    parts.push(text.slice(begin));
    return parts;
}

// acceptable reads the first q among a member's parameters. One that is no
// number from 0 to 1 refuses the format, as 0 does.
function acceptable(parts) {
    for (var i = 1; i < parts.length; i++) {
        var equals = parts[i].indexOf('=');
        if (equals < 0 || trim(parts[i].slice(0, equals)).toLowerCase() !== 'q') {
            if (equals < 0 && trim(parts[i]).toLowerCase() === 'q') {
                return false;
            }
            continue;
        }
        var value = trim(parts[i].slice(equals + 1));
        if (!/^[0-9.]{1,16}$/.test(value) || !/^([0-9]+\.?[0-9]*|\.[0-9]+)$/.test(value)) {
            return false;
        }
        var q = parseFloat(value);
        return q > 0 && q <= 1;
    }
    return true;
}

// trim takes off spaces and tabs only, the white space of HTTP.
function trim(text) {
    var begin = 0;
    var end = text.length;
    while (begin < end && (text.charAt(begin) === ' ' || text.charAt(begin) === '\t')) {
        begin++;
    }
    while (begin < end && (text.charAt(end - 1) === ' ' || text.charAt(end - 1) === '\t')) {
        end--;
    }
    return text.slice(begin, end);
}

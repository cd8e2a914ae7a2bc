/* Copyright (c) 2026 goodput.fleet contributors
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libnvidia-ml without GPUs: the C interface of NVML, as far as gpu_health_info uses it. Healthy GPUs, unless the file
 * that NVML_STANDIN names says otherwise, a fact a line, the last one holds:
 *
 *     count 8                                     how many GPUs
 *     init 9                                      what nvmlInit returns
 *     3 remap_failure 1                           a reading of GPU 3; "na": the GPU does not have it; "*": every GPU
 *     3 nvmlDeviceGetTemperature error 15         a function returns an error
 *     3 nvmlDeviceGetTemperature hang             a function never returns
 *     3 nvmlDeviceGetTemperature crash            a function ends the process
 *     3 link 4 0                                  state of an NVLink
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int uint;
typedef unsigned long long ulonglong;
typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };
#define GPUS 64
#define LINKS 18

struct device { int index; };
static struct device devices[GPUS];

/* The value of the last line that begins with these words; 0 where there is none. */
static int find(int gpu, const char *what, char *value, size_t size)
{
    const char *path = getenv("NVML_STANDIN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256], mine[160], all[160];
    int found = 0;

    if (!file)
        return 0;
    if (gpu < 0)
        snprintf(mine, sizeof mine, "%s ", what);
    else
        snprintf(mine, sizeof mine, "%d %s ", gpu, what);
    snprintf(all, sizeof all, "* %s ", what);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        const char *rest = NULL;
        if (!strncmp(line, mine, strlen(mine)))
            rest = line + strlen(mine);
        else if (gpu >= 0 && !strncmp(line, all, strlen(all)))
            rest = line + strlen(all);
        if (rest) {
            snprintf(value, size, "%s", rest);
            found = 1;
        }
    }
    fclose(file);
    return found;
}

/* What the function does instead of answering. */
static nvmlReturn_t trouble(int gpu, const char *function)
{
    char value[64];

    if (!find(gpu, function, value, sizeof value))
        return SUCCESS;
    if (!strcmp(value, "hang"))
        for (;;)
            pause();
    if (!strcmp(value, "crash"))
        raise(SIGKILL); /* a signal that no handler of the tests reports */
    return strncmp(value, "error ", 6) ? SUCCESS : atoi(value + 6);
}

/* A reading as a number; NOT_SUPPORTED where the GPU does not have it. */
static nvmlReturn_t reading(int gpu, const char *name, long long normal, long long *value)
{
    char text[64];

    *value = normal;
    if (!find(gpu, name, text, sizeof text))
        return SUCCESS;
    if (!strcmp(text, "na"))
        return NOT_SUPPORTED;
    *value = (long long)strtoull(text, NULL, 0);
    if (text[0] == '-')
        *value = strtoll(text, NULL, 0);
    return SUCCESS;
}

static nvmlReturn_t text_reading(int gpu, const char *name, const char *normal, char *out, uint size)
{
    char text[128];

    snprintf(out, size, "%s", normal);
    if (!find(gpu, name, text, sizeof text))
        return SUCCESS;
    if (!strcmp(text, "na"))
        return NOT_SUPPORTED;
    snprintf(out, size, "%s", text);
    return SUCCESS;
}

#define ENTER(gpu) do { nvmlReturn_t bad = trouble(gpu, __func__); if (bad) return bad; } while (0)
#define READ(gpu, name, normal, out) \
    do { \
        long long got; \
        nvmlReturn_t bad = reading(gpu, name, normal, &got); \
        if (bad) \
            return bad; \
        *(out) = got; \
    } while (0)

/* the driver */

nvmlReturn_t nvmlInitWithFlags(uint flags)
{
    (void)flags;
    ENTER(-1);
    long long value;
    reading(-1, "init", SUCCESS, &value);
    return (nvmlReturn_t)value;
}

nvmlReturn_t nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(nvmlReturn_t code)
{
    switch (code) {
    case 3: return "Not Supported";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 16: return "GPU requires restart";
    case 23: return "Insufficient Resources";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, uint size)
{
    ENTER(-1);
    return text_reading(-1, "driver", "580.105.08", out, size);
}

nvmlReturn_t nvmlDeviceGetCount_v2(uint *count)
{
    ENTER(-1);
    READ(-1, "count", 8, count);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(uint index, nvmlDevice_t *device)
{
    if (index >= GPUS)
        return INVALID_ARGUMENT;
    ENTER((int)index);
    devices[index].index = (int)index;
    *device = &devices[index];
    return SUCCESS;
}

/* who a GPU is */

typedef struct {
    char busIdLegacy[16];
    uint domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out)
{
    ENTER(device->index);
    memset(out, 0, sizeof *out);
    out->bus = 0x10u + (uint)device->index;
    char normal[32];
    snprintf(normal, sizeof normal, "00000000:%02X:00.0", out->bus);
    return text_reading(device->index, "pci", normal, out->busId, sizeof out->busId);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, uint size)
{
    ENTER(device->index);
    char normal[64];
    snprintf(normal, sizeof normal, "GPU-%08x-5d6e-7f80-91a2-b3c4d5e6f708", device->index);
    return text_reading(device->index, "uuid", normal, out, size);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *out, uint size)
{
    ENTER(device->index);
    char normal[32];
    snprintf(normal, sizeof normal, "16500000000%02d", device->index);
    return text_reading(device->index, "serial", normal, out, size);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, uint size)
{
    ENTER(device->index);
    return text_reading(device->index, "name", "NVIDIA H200", out, size);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, uint *current, uint *pending)
{
    ENTER(device->index);
    READ(device->index, "mig", 0, current);
    *pending = *current;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state)
{
    ENTER(device->index);
    READ(device->index, "pstate", 0, state);
    return SUCCESS;
}

/* what it needs */

typedef struct {
    uint fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    union { double d; uint ui; unsigned long ul; ulonglong ull; } value;
} nvmlFieldValue_t;

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    ENTER(device->index);
    for (int i = 0; i < count; i++) {
        long long value = 0;
        values[i].valueType = 1; /* unsigned int */
        values[i].nvmlReturn = values[i].fieldId == 230 ? reading(device->index, "recovery", 0, &value) : NOT_SUPPORTED;
        values[i].value.ui = (uint)value;
    }
    return SUCCESS;
}

/* memory */

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, ulonglong *count)
{
    (void)type;
    ENTER(device->index);
    READ(device->index, counter == 0 ? "ecc_volatile" : "ecc_aggregate", 0, count);
    return SUCCESS;
}

typedef struct {
    uint version;
    ulonglong counters[11];
    uint thresholdExceeded;
} nvmlEccSramErrorStatus_t;

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *status)
{
    ENTER(device->index);
    READ(device->index, "sram_threshold", 0, &status->thresholdExceeded);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, int cause, uint *count, ulonglong *addresses)
{
    ENTER(device->index);
    long long pages;
    nvmlReturn_t bad = reading(device->index, cause ? "retired_dbe" : "retired_sbe", 0, &pages);
    if (bad)
        return bad;
    uint room = *count;
    *count = (uint)pages;
    if (room < (uint)pages || !addresses)
        return pages ? INSUFFICIENT_SIZE : SUCCESS;
    for (uint i = 0; i < (uint)pages; i++)
        addresses[i] = 0x1000ull * i;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, int *pending)
{
    ENTER(device->index);
    READ(device->index, "retired_pending", 0, pending);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, uint *corrected, uint *uncorrected, uint *pending,
                                       uint *failure)
{
    ENTER(device->index);
    *corrected = 0;
    READ(device->index, "remapped", 0, uncorrected);
    READ(device->index, "remap_pending", 0, pending);
    READ(device->index, "remap_failure", 0, failure);
    return SUCCESS;
}

typedef struct {
    uint version, channelPending, tpcPending;
} nvmlRepairStatus_t;

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status)
{
    ENTER(device->index);
    READ(device->index, "repair_channel", 0, &status->channelPending);
    READ(device->index, "repair_tpc", 0, &status->tpcPending);
    return SUCCESS;
}

/* clocks, heat, PCIe */

#define NUMBER(function, type, name, normal) \
    nvmlReturn_t function(nvmlDevice_t device, type *value) \
    { \
        ENTER(device->index); \
        READ(device->index, name, normal, value); \
        return SUCCESS; \
    }

NUMBER(nvmlDeviceGetCurrentClocksEventReasons, ulonglong, "clock_reasons", 0)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, "pcie_width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, uint, "pcie_width_max", 16)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, "pcie_generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, uint, "pcie_generation_max", 5)

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, uint *value)
{
    (void)sensor;
    ENTER(device->index);
    READ(device->index, "temperature", 41, value);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int threshold, uint *value)
{
    ENTER(device->index);
    const char *name = threshold == 0 ? "temperature_shutdown" : "temperature_slowdown";
    READ(device->index, name, threshold == 0 ? 92 : 87, value);
    return SUCCESS;
}

typedef struct {
    uint version;
    int margin;
} nvmlMarginTemperature_t;

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *value)
{
    ENTER(device->index);
    READ(device->index, "margin", 46, &value->margin);
    return SUCCESS;
}

/* links */

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, uint link, int *active)
{
    ENTER(device->index);
    if (link >= LINKS)
        return INVALID_ARGUMENT;
    char name[32];
    long long built_in;
    nvmlReturn_t bad = reading(device->index, "links", 1, &built_in);
    if (bad)
        return bad;
    snprintf(name, sizeof name, "link %u", link);
    READ(device->index, name, built_in, active);
    return SUCCESS;
}

typedef struct {
    uint version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    uint cliqueId;
    unsigned char state;
    uint healthMask;
} nvmlGpuFabricInfo_t;

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    ENTER(device->index);
    READ(device->index, "fabric_status", SUCCESS, &info->status);
    READ(device->index, "fabric_state", 3, &info->state);
    READ(device->index, "fabric_health", 0xaa, &info->healthMask);
    return SUCCESS;
}
